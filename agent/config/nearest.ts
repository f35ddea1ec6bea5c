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
