/** Reads shell commands as far as a check needs. Every step takes linear time, because a tenant may write a megabyte of text. */

/** The words and separators (`|`, `||`, `&&`, `;`, a line break, brackets) of a text. Quotes are dropped, so nested commands count too. */
export function wordsOfShell(text: string): readonly string[] {
  const joined = text.replaceAll('\\\n', ' ')
  return joined.match(/https?:\/\/[^\s"'`<>|;()]+|\|\||&&|[;|()&\n]|[^\s"'`;|()&]+/g) ?? []
}

const SEPARATORS: ReadonlySet<string> = new Set(['|', '||', '&&', '&', ';', '\n', '(', ')'])

/** The simple command that the word at `index` belongs to, without separators. */
export function commandAround(words: readonly string[], index: number): readonly string[] {
  let from = index
  while (from > 0 && !SEPARATORS.has(words[from - 1] ?? '')) from -= 1
  let to = index
  while (to < words.length && !SEPARATORS.has(words[to] ?? '')) to += 1
  return words.slice(from, to)
}

/** The value of a long option: `--name value` or `--name=value`, with one dash or two. */
export function optionOf(words: readonly string[], name: string): string | undefined {
  for (const [i, word] of words.entries()) {
    const bare = word.startsWith('--') ? word.slice(2) : word.startsWith('-') ? word.slice(1) : ''
    if (bare === name) return words[i + 1]
    if (bare.startsWith(`${name}=`)) return bare.slice(name.length + 1)
  }
  return undefined
}

/** The limit that the program `timeout` sets, in ms; `undefined` if the text has no `timeout`, or its limit is a variable. */
export function timeoutMs(words: readonly string[]): number | undefined {
  let at = words.findIndex(word => word === 'timeout' || word.endsWith('/timeout'))
  if (at < 0) return undefined
  at += 1
  while (words[at]?.startsWith('-')) at += words[at] === '-k' || words[at] === '-s' ? 2 : 1
  return secondsOf(words[at])
}

/**
 * All sleeps that do not run in the background, in ms.
 *
 * @param last only the last one counts: others may be inside of `timeout`
 */
export function sleepsMs(words: readonly string[], last: boolean): number {
  const all = words.flatMap((word, i) =>
    word === 'sleep' && words[i + 2] !== '&' ? [secondsOf(words[i + 1]) ?? 0] : []
  )
  return last ? (all.at(-1) ?? 0) : all.reduce((sum, ms) => sum + ms, 0)
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `20`, `2.5` or `20s` in ms. */
export function secondsOf(word: string | undefined): number | undefined {
  const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,9})?)([smhd])?$/.exec(word ?? '') ?? []
  return number === undefined ? undefined : Number(number) * (UNITS[unit] ?? 1000)
}
