import type { Sentence } from './sentence.ts'

/** The text for screen readers, and when it was announced, in ms. */
export interface Announced {
  readonly text: string
  readonly level: Sentence['level'] | 'lost'
  readonly at: number
}

/** The shortest time between two announcements, in ms, because speech takes seconds. A new problem is announced at once. */
const PAUSE_MS = 10_000

const withoutNumbers = (text: string) => text.replaceAll(/[\d.,]+/g, 'n').replaceAll(/\b(\w+?)s?\b/g, '$1')

/** The next text of the live region. It stays the same while only numbers change, and for `PAUSE_MS` after each announcement. */
export function announce(
  before: Announced | undefined,
  { head, level }: { readonly head: string; readonly level: Announced['level'] },
  now: number
): Announced {
  const next = { text: head, level, at: now }
  if (!before) return next
  const isTrouble = level === 'bad' || level === 'lost'
  if (level !== before.level && isTrouble) return next
  if (withoutNumbers(before.text) === withoutNumbers(head) || now - before.at < PAUSE_MS) return before
  return next
}
