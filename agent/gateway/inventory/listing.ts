import { CodedError } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'
import type { AdminApi, AdminObject } from '../apisix/admin-api.ts'

/** How many times a listing is tried if objects are added or deleted between two pages. */
const TRIES = 3

/** The most objects of one collection. */
const MOST = 100_000

/**
 * Every object of one collection, page by page.
 *
 * For each request, APISIX cuts the page from its current list (by createdIndex). So a deletion on an earlier page moves an object from
 * the next page to the page before, and the listing misses this object. The total then differs, and the listing begins again.
 *
 * @returns `undefined` if APISIX has no such collection: its stream mode is off
 * @throws CodedError, ADMIN_UNSTEADY if the collection kept changing: an incomplete list would make holders vanish
 */
export async function listAll(
  admin: Pick<AdminApi, 'list' | 'pageSize'>,
  resource: Resource,
  signal?: AbortSignal
): Promise<readonly AdminObject[] | undefined> {
  for (let tries = 1; ; tries++) {
    const { objects, steady, isOff } = await listOnce(admin, resource, signal)
    if (isOff) return undefined
    if (steady) return objects
    if (tries === TRIES) throw new CodedError('ADMIN_UNSTEADY', `listing ${resource}`)
  }
}

async function listOnce(
  admin: Pick<AdminApi, 'list' | 'pageSize'>,
  resource: Resource,
  signal?: AbortSignal
): Promise<{ objects: AdminObject[]; steady: boolean; isOff?: true | undefined }> {
  const first = await admin.list(resource, 1, signal)
  if (first.total > MOST)
    throw new CodedError('ADMIN_TOO_LARGE', `listing ${resource}: ${first.total} objects`)
  const objects = [...first.objects]
  const pages = Math.ceil(first.total / admin.pageSize)
  let steady = true
  for (let page = 2; page <= pages; page++) {
    const next = await admin.list(resource, page, signal)
    // Objects were deleted, or the total is wrong.
    if (next.objects.length === 0) return { objects, steady: false }
    steady &&= next.total === first.total
    for (const object of next.objects) objects.push(object)
  }
  return { objects, steady, isOff: first.isOff }
}

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
