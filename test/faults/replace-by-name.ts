import {
  isArrowFunction,
  isBlock,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isIdentifier,
  isMethodDeclaration,
  isPropertyAssignment,
  isStringLiteral,
  isVariableDeclaration,
  type Node,
  type SourceFile
} from 'typescript/unstable/ast'
import { createVirtualFileSystem } from 'typescript/unstable/fs'
import { API } from 'typescript/unstable/sync'

/** A change of one declaration in a file. */
export interface NamedEdit {
  readonly file: string
  /**
   * The declared names that lead to the declaration, from the top of the file: `createLoop.advance.next`. It can be a function,
   * method, variable or property of an object literal. Parameters, types, shorthand properties and destructured variables cannot be named.
   */
  readonly name: string
  /**
   * The text in place of the value of a variable or a property. For a function it replaces the whole body: an expression that
   * is returned, or a block if it begins with `{`. A variable or property whose value is a function counts as a function.
   */
  readonly replace: string
  /** Import declarations that `replace` needs. */
  readonly imports?: readonly string[]
}

/** A parsed TypeScript file, without a type check. */
export interface Parsed {
  readonly text: string
  readonly tree: SourceFile
  /** The syntax errors. */
  readonly problems: readonly string[]
}

/** Parses all `texts` in one call, because each call starts the compiler, which takes most of the time. Returns them by key. */
export function parse<K>(texts: ReadonlyMap<K, string>): ReadonlyMap<K, Parsed> {
  const all = [...texts].map(([key, text], i) => ({ key, text, path: `/${i}.ts` }))
  const files = Object.fromEntries(all.map(({ path, text }) => [path, text]))
  const config = {
    compilerOptions: { noLib: true, noResolve: true, types: [], target: 'esnext', module: 'esnext' },
    files: Object.keys(files)
  }
  const fs = createVirtualFileSystem({ ...files, '/tsconfig.json': JSON.stringify(config) })
  const compiler = new API({ fs })
  try {
    const [project] = compiler.updateSnapshot({ openProjects: ['/tsconfig.json'] }).getProjects()
    const parsed = all.map(({ key, text, path }): [K, Parsed] => {
      const tree = project?.program.getSourceFile(path)
      if (!project || !tree) throw new Error(`${String(key)} was not parsed`)
      const problems = project.program.getSyntacticDiagnostics(path).map(problem => problem.text)
      return [key, { text, tree, problems }]
    })
    return new Map(parsed)
  } finally {
    // The compiler may write `context canceled` to stderr as it ends.
    compiler.close()
  }
}

/**
 * Returns the text of one file with its edits.
 *
 * @throws Error if the file does not declare a name exactly once, or if the declaration is equal to the replacement already
 */
export function replaceByName({ text, tree }: Parsed, edits: readonly NamedEdit[]): string {
  const declared = Map.groupBy(declarationsIn(tree), ({ name }) => name)
  const changes = edits.map(({ file, name, replace }) => {
    const [found, ...more] = declared.get(name) ?? []
    if (!found || more.length > 0)
      throw new Error(`${file}: ${name} is declared ${found ? more.length + 1 : 0} times`)
    const { value } = found
    const [start, end] = [value.getStart(tree), value.end]
    if (bare(text.slice(start, end)) === bare(replace)) throw new Error(`${file}: ${name} is that already`)
    return { start, end, put: found.isBody ? bodyOf(replace, value) : `(${replace})` }
  })
  const edited = changes
    .sort((a, b) => b.start - a.start)
    .reduce((before, { start, end, put }) => before.slice(0, start) + put + before.slice(end), text)
  return [...edits.flatMap(({ imports = [] }) => imports), edited].join('; ')
}

const bare = (source: string): string => source.replaceAll(/\s/g, '')

function bodyOf(replace: string, before: Node): string {
  if (replace.startsWith('{')) return replace
  return isBlock(before) ? `{ return (${replace}) }` : `(${replace})`
}

interface Declaration {
  readonly name: string
  readonly value: Node
  /** `value` is the body of a function. */
  readonly isBody: boolean
}

function declarationsIn(tree: SourceFile): readonly Declaration[] {
  const all: Declaration[] = []
  const visit = (node: Node, path: string): void => {
    const own = nameOf(node)
    const name = [path, own].filter(Boolean).join('.')
    const value = valueOf(node)
    if (own !== undefined && value) all.push({ name, ...value })
    node.forEachChild(child => visit(child, name))
  }
  visit(tree, '')
  return all
}

function nameOf(node: Node): string | undefined {
  if (!isFunction(node) && !isValue(node)) return undefined
  const { name } = node
  return name && (isIdentifier(name) || isStringLiteral(name)) ? name.text : undefined
}

function valueOf(node: Node): Omit<Declaration, 'name'> | undefined {
  if (isFunction(node)) return node.body && { value: node.body, isBody: true }
  if (!isValue(node) || !node.initializer) return undefined
  const value = node.initializer
  return isArrowFunction(value) || isFunctionExpression(value)
    ? { value: value.body, isBody: true }
    : { value, isBody: false }
}

const isFunction = (node: Node) =>
  isFunctionDeclaration(node) || isMethodDeclaration(node) || isGetAccessorDeclaration(node)

const isValue = (node: Node) => isVariableDeclaration(node) || isPropertyAssignment(node)
