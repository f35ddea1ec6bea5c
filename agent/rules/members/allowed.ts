import type { Claim } from './claim.ts'

/** An entry of `sync.allow`: a namespace, a slash, and the id of an upstream. `*` stands for any characters. */
export const ALLOW_FORM = /^[a-z0-9*-]{1,63}\/[a-zA-Z0-9*_.-]{1,64}$/

/**
 * Reads `sync.allow`.
 *
 * @param patterns each of `ALLOW_FORM`
 * @returns whether the namespace of a claim may fill the upstream that it names
 */
export function allowedBy(patterns: readonly string[]): (claim: Claim) => boolean {
  const expressions = patterns.map(pattern => new RegExp(`^${expressionOf(pattern)}$`))
  return ({ service, id }) => expressions.some(one => one.test(`${service.namespace}/${id}`))
}

/**
 * `*` matches any characters except the slash between namespace and id. Besides `*`, only the dot needs an escape: `ALLOW_FORM` allows no
 * other special character.
 */
const expressionOf = (pattern: string): string => pattern.replaceAll('.', '\\.').replaceAll(/\*+/g, '[^/]*')
