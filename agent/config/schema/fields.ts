import { z } from 'zod'
import { DURATION_FORM, formatDuration, parseDuration } from '../../rules/drain/duration.ts'

/** The kinds of fields that the schema is made of. */

interface Range {
  readonly min: string
  readonly max: string
}

const ms = (text: string) => parseDuration(text) ?? Number.NaN

/** A duration stays text here, so that it can be printed as it was written. `resolve.ts` converts it to ms. */
export const duration = (byDefault: string, { min, max }: Range, description: string) =>
  z
    .string({ error: `write a duration: ${DURATION_FORM}` })
    .refine(text => parseDuration(text) !== undefined, {
      error: `write a duration: ${DURATION_FORM}`,
      abort: true
    })
    .refine(text => ms(text) >= ms(min) && ms(text) <= ms(max), {
      error: `must be between ${formatDuration(ms(min))} and ${formatDuration(ms(max))}`
    })
    .default(byDefault)
    .meta({ description, format: `duration, ${min} to ${max}` })

export const port = (byDefault: number, description: string) =>
  z.int().min(1).max(65_535).default(byDefault).describe(description)

export const text = () => z.string().trim().min(1)
