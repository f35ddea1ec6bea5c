import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A message to an operator. `parts` are the texts between the inserted values. */
export interface Message {
  readonly file: string
  readonly parts: readonly string[]
}

const ROOT = join(import.meta.dirname, '../../..')

/**
 * Returns the text of every file, except tests, that matches a pattern from the project's root.
 * @throws if a pattern, or one alternative of its braces, matches no file: a check of nothing would always pass
 */
export function sources(...patterns: readonly string[]): { readonly file: string; readonly text: string }[] {
  const files = new Set(patterns.flatMap(alternatives).flatMap(matches).filter(isNoTest))
  return [...files].toSorted().map(file => ({ file, text: readFileSync(join(ROOT, file), 'utf8') }))
}

/** Expands braces: `a/{b,c/{d,e}}` becomes `a/b`, `a/c/d` and `a/c/e`. */
function alternatives(pattern: string): readonly string[] {
  const [inner, names = ''] = /\{([^{}]*)\}/.exec(pattern) ?? []
  return inner ? names.split(',').flatMap(name => alternatives(pattern.replace(inner, name))) : [pattern]
}

function matches(pattern: string): readonly string[] {
  const found = globSync(pattern, { cwd: ROOT })
  if (found.length === 0) throw new Error(`no file is named ${pattern}`)
  return found
}

const isNoTest = (file: string) => !/[._]test\.(ts|go)$/.test(file)

/** Whether a page has the parts of a message, in order, in one piece of code. There, `…` may stand for a value. */
export function tells(page: string, { parts }: Message): boolean {
  const escaped = parts
    .filter(part => /\w/.test(part))
    .map(part => part.trim().replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`))
  return new RegExp(escaped.join('[^`\\n]*?')).test(page)
}

/** Returns every sentence of TypeScript files: every literal of three words or more. */
export const sentences = (...patterns: readonly string[]): Message[] =>
  sources(...patterns).flatMap(({ file, text }) =>
    literals(text).flatMap(({ parts }) => (isSentence(parts) ? [{ file, parts }] : []))
  )

/**
 * Returns one literal of every call whose beginning matches `begins`. `which` counts from 0, or from the end (-1).
 *
 * @param begins must end with the opening parenthesis, and be global
 */
export function inCalls(begins: RegExp, which: number, ...patterns: readonly string[]): Message[] {
  return sources(...patterns).flatMap(({ file, text }) => {
    const all = literals(text)
    return [...text.matchAll(begins)].flatMap(({ index, 0: { length } }) => {
      const from = index + length
      const to = endOfCall(text, from, all)
      const inside = all.filter(({ start }) => start >= from && start < to)
      const found = inside.filter(({ parts }) => which < 0 || isSentence(parts)).at(which)
      return found ? [{ file, parts: found.parts }] : []
    })
  })
}

/** Returns the literals in double quotes of Go and Lua files, without Go's format verbs. */
export function quoted(begins: RegExp, ...patterns: readonly string[]): Message[] {
  return sources(...patterns).flatMap(({ file, text }) =>
    [...text.matchAll(begins)].flatMap(({ 1: literal = '' }) => {
      const parts = literal.replaceAll(/\\(.)/g, '$1').split(/%\.?\d*[a-z]/)
      return isSentence(parts) ? [{ file, parts }] : []
    })
  )
}

interface Literal {
  readonly start: number
  readonly end: number
  readonly parts: readonly string[]
}

const isSentence = (parts: readonly string[]) => /\w.* .*\w.* .*\w/s.test(parts.join('x'))

/** Matches a comment, a string or a template. A template inside a template is a value of the outer template. */
const TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\$]|\\.|\$(?!\{)|\$\{(?:[^{}]|\{[^{}]*\})*\})*`/g

function literals(text: string): Literal[] {
  return [...text.matchAll(TOKEN)].flatMap(({ index, 0: token }) => {
    if (token.startsWith('/')) return []
    const parts = token.slice(1, -1).split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/)
    return [
      { start: index, end: index + token.length, parts: parts.map(part => part.replaceAll(/\\(.)/g, '$1')) }
    ]
  })
}

/** Returns the position of the closing parenthesis of a call whose arguments begin at `from`. */
function endOfCall(text: string, from: number, all: readonly Literal[]): number {
  let depth = 1
  for (let at = from; at < text.length; at += 1) {
    const literal = all.find(({ start }) => start === at)
    if (literal) at = literal.end - 1
    else if (text[at] === '(') depth += 1
    else if (text[at] === ')') depth -= 1
    if (depth === 0) return at
  }
  return text.length
}
