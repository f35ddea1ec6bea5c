/** The smallest value that at least `share` (0 to 1) of the values do not exceed; 0 if there are no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0
}

/** The three figures that every table of the sandbox shows, in tenths of a millisecond. */
export const summary = (values: readonly number[]) => ({
  p50: tenths(percentile(values, 0.5)),
  p99: tenths(percentile(values, 0.99)),
  max: tenths(percentile(values, 1))
})

const tenths = (value: number) => Math.round(value * 10) / 10
