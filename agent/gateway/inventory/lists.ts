import type { Logger } from 'pino'
import { CodedError } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'
import { NO_ADMIN, type AdminApi, type AdminObject } from '../apisix/admin-api.ts'
import { isRecord } from '../../base/read.ts'

/** How APISIX is run, which decides whether anything may be written. `none`: no Admin API is configured; `undefined`: not known yet. */
export interface ModeState {
  readonly mode: 'etcd' | 'standalone' | 'none' | undefined
}

/** The lists of objects, as one listing reads them. */
export type Lists = Pick<AdminApi, 'list' | 'pageSize'>

/**
 * The source of the inventory: the Admin API's collections, or the document of API-driven standalone mode. In that mode each gateway has a
 * document of its own. The agent reads the one that the configured Admin API answers with, because it shows the Admin API key to no other
 * address. So what it lists is evidence for one gateway only.
 */
export interface ListSource {
  /** As of the last listing: another APISIX can be installed behind the same Service. */
  current(): ModeState
  /** Opens the lists for one listing, which all come from the same document. */
  open(signal?: AbortSignal): Promise<Lists>
}

const WRITTEN: Readonly<Record<'etcd' | 'standalone', string>> = {
  etcd: 'APISIX keeps its configuration in etcd: holders are written through the Admin API',
  standalone: 'APISIX is in API-driven standalone mode: nothing is ever written'
}

type Value = AdminObject['value']

export const NO_LISTS: ListSource = {
  current: () => ({ mode: 'none' }),
  open: () => Promise.resolve(NO_ADMIN)
}

export function createListSource(admin: Lists & Pick<AdminApi, 'standalone'>, log?: Logger): ListSource {
  const revisions = new Map<string, { readonly text: string; readonly revision: number }>()
  let state: ModeState = { mode: undefined }
  let last = 0

  const learn = (mode: 'etcd' | 'standalone'): void => {
    const { mode: before } = state
    if (mode === before) return
    state = { mode }
    if (before) log?.warn({ mode, before }, `the mode has changed: ${WRITTEN[mode]}`)
    else log?.info({ mode }, WRITTEN[mode])
  }
  /** Counts the changes of an object, because the documents' own `modifiedIndex` is the owner's clock, and differs between gateways. */
  const revisionOf = (name: string, value: Value): number => {
    const text = JSON.stringify(value)
    const known = revisions.get(name)
    if (known?.text === text) return known.revision
    revisions.set(name, { text, revision: ++last })
    return last
  }
  const toObject = (resource: Resource, value: Value): AdminObject => {
    const id = idOf(value)
    return { resource, id, value, revision: revisionOf(`${resource}/${id}`, value) }
  }
  return {
    current: () => state,
    async open(signal) {
      let document: Awaited<ReturnType<AdminApi['standalone']>>
      try {
        document = await admin.standalone(signal)
      } catch (error) {
        // Empty collections of a standalone APISIX would mean that every holder is gone.
        if (state.mode === 'standalone') throw error
        return admin
      }
      learn(document ? 'standalone' : 'etcd')
      if (!document) return admin
      return {
        // A document comes as a whole, so there is no second page.
        pageSize: Infinity,
        async list(resource) {
          const items = document[resource]
          const objects = (Array.isArray(items) ? items : [])
            .filter(isRecord)
            .map(value => toObject(resource, value))
          return { total: objects.length, objects }
        }
      }
    }
  }
}

const idOf = ({ id, username }: Value): string => {
  const given = id ?? username
  return typeof given === 'string' || typeof given === 'number' ? String(given) : ''
}

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
  admin: Lists,
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
  admin: Lists,
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
