import { percentile } from '../../sandbox/percentile.ts'

/** A summary of measured values, in ms unless the name of the field says otherwise. */
export interface Spread {
  readonly n: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

const hundredths = (value: number): number => Math.round(value * 100) / 100

export const spread = (values: readonly number[]): Spread => ({
  n: values.length,
  p50: hundredths(percentile(values, 0.5)),
  p90: hundredths(percentile(values, 0.9)),
  p99: hundredths(percentile(values, 0.99)),
  max: hundredths(percentile(values, 1))
})

/** `a` divided by `b`, in hundredths; 0 if `b` is 0. */
export const ratio = (a: number, b: number): number => (b === 0 ? 0 : hundredths(a / b))
