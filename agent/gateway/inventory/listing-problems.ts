import { CodedError } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'

/** Each failure once, with all its collections: a wrong key fails all listings in the same way. */
export function tellProblems(problems: ReadonlyMap<Resource, Error>): string {
  const alike = Map.groupBy(problems, ([, error]) => kindOf(error))
  return [...alike.values()]
    .map(same => `${same.map(([resource]) => resource).join(', ')}: ${same[0]?.[1].message ?? ''}`)
    .join('; ')
}

/** The kind of a failure. The message names the collection's URL, so messages of one kind differ. */
const kindOf = (error: Error): string =>
  error instanceof CodedError
    ? [error.code, error.status, error.said, error.network].join(' ')
    : error.message
