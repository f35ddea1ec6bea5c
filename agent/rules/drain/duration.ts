const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const

/** The form of a duration, for messages. */
export const DURATION_FORM = 'a number and a unit, such as 3s, 250ms or 2m'

/** Converts `3s`, `250ms` or `1.5m` to ms; `undefined` if the text is not a duration. A number needs its unit. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  if (!match?.[1] || !match[2]) return undefined
  const ms = Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined
}

/** The shortest exact form: 3000 is `3s`, 1500 is `1500ms`, 0 is `0s`. */
export function formatDuration(ms: number): string {
  for (const unit of ['h', 'm', 's'] as const) {
    if (ms % UNITS[unit] === 0 && (ms > 0 || unit === 's')) return `${ms / UNITS[unit]}${unit}`
  }
  return `${ms}ms`
}
