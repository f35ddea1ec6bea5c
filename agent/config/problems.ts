import type { z } from 'zod'
import { configRows } from './schema/rows.ts'

type Issue = z.core.$ZodIssue

/**
 * The problems that the schema found, one line each: the setting, the problem, and the probable intent. Values are not shown,
 * because a value may be a secret.
 */
export function schemaProblems(issues: readonly Issue[]): string[] {
  return issues.flatMap(issue => {
    const path = issue.path.map(String)
    if (issue.code === 'unrecognized_keys') return issue.keys.map(key => unknownKey([...path, key]))
    if (issue.code === 'invalid_type' && isMissing(issue)) return required(path)
    return [`${path.join('.') || 'the file'}: ${readable(issue)}`]
  })
}

const isMissing = (issue: Issue) => issue.message.endsWith('received undefined')

function readable(issue: Issue): string {
  if (issue.code === 'too_small' && issue.origin !== 'string') return `must be at least ${issue.minimum}`
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}`
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  if (issue.code === 'too_small') return 'must not be empty'
  return issue.message.replace(/^Invalid input: /, '')
}

/** One line for the missing setting. For a missing section: one line for each setting in it that has no default. */
function required(path: readonly string[]): string[] {
  const prefix = path.join('.')
  const rows = configRows.filter(row => {
    const name = row.path.join('.')
    return name === prefix || (row.required && !row.section && name.startsWith(`${prefix}.`))
  })
  const settings = rows.filter(row => !row.section)
  return (settings.length > 0 ? settings : rows).map(
    row =>
      `${row.path.join('.')}: is required${row.example ? `, such as ${JSON.stringify(row.example)}` : ''}`
  )
}

/** Keys under which users mistakenly write a secret itself. */
const INLINE: Readonly<Record<string, string>> = { key: 'keyFile or keyEnv', token: 'tokenFile or tokenEnv' }

function unknownKey(path: readonly string[]): string {
  const dotted = path.join('.')
  const name = path.at(-1) ?? ''
  const parent = path.slice(0, -1).join('.')
  const siblings = configRows
    .filter(row => row.path.slice(0, -1).join('.') === parent)
    .map(row => row.path.at(-1) ?? '')
  const inline = INLINE[name]
  if (inline && siblings.includes(inline.split(' ')[0] ?? '')) {
    return `${dotted}: a secret is not written into the configuration; use ${inline}`
  }
  const here = nearest(name, siblings)
  if (here) return `${dotted}: no such setting, did you mean ${here}?`
  const elsewhere = configRows.find(row => row.path.at(-1) === name)
  return `${dotted}: no such setting${elsewhere ? `; ${name} belongs to ${elsewhere.path.join('.')}` : ''}`
}

/** Edit distance (Levenshtein) of two short words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

const plain = (word: string) => word.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** The known word that the user probably meant: at most a third of it differs. Case and punctuation do not count. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: { readonly word: string; readonly far: number } | undefined
  for (const candidate of known) {
    const far = distance(plain(word), plain(candidate))
    if (far <= Math.max(1, candidate.length / 3) && (!best || far < best.far)) best = { word: candidate, far }
  }
  return best?.word
}
