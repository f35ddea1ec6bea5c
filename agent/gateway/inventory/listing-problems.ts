import { CodedError } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'

/** The failures as text, each once with all collections that have it: a wrong key fails all listings in the same way. */
export function tellProblems(problems: ReadonlyMap<Resource, Error>): string {
  const alike = Map.groupBy(problems, ([, error]) => kindOf(error))
  return [...alike.values()]
    .map(same => `${same.map(([resource]) => resource).join(', ')}: ${same[0]?.[1].message ?? ''}`)
    .join('; ')
}

/** The kind of a failure. The message cannot serve as the kind, because it names the collection's URL. */
const kindOf = (error: Error): string =>
  error instanceof CodedError
    ? [error.code, error.status, error.serverMessage, error.network].join(' ')
    : error.message
