import { ApiError, badRequest, continueExpired, invalid, tooLarge } from './errors.ts'
import { listOf } from './media.ts'
import { matcher } from './selectors.ts'
import type { Store } from './store.ts'
import type { Target } from './target.ts'

/** The position of a page token. `version` 0: the collection's present state, after the token has expired. */
interface Page {
  readonly version: number
  readonly after: string
}

const encode = (page: Page): string => Buffer.from(JSON.stringify({ v: 1, ...page })).toString('base64url')

function decode(token: string): Page {
  try {
    const { version, after } = JSON.parse(Buffer.from(token, 'base64url').toString()) as Partial<Page>
    if (typeof version === 'number' && typeof after === 'string') return { version, after }
  } catch {
    // the throw below reports it
  }
  throw badRequest('continue key is not valid: unable to decode the token')
}

export const parseVersion = (text: string | null): number | undefined => {
  if (text === null || text === '') return undefined
  if (!/^\d+$/.test(text)) throw badRequest(`invalid resource version "${text}": must be a number`)
  return Number(text)
}

/** Waits until the store has reached `version`, as a read "not older than" does: 504 after `waitMs` (3 s in Kubernetes). */
export async function reach(store: Store, version: number, waitMs: number): Promise<void> {
  if (version <= store.version()) return
  await new Promise<void>((resolve, reject) => {
    const stop = store.onAnyChange(() => {
      if (store.version() < version) return
      stop()
      clearTimeout(timer)
      resolve()
    })
    const timer = setTimeout(() => {
      stop()
      reject(tooLarge(version, store.version()))
    }, waitMs)
  })
}

/** The version that a list without a page token shows. */
async function moment(store: Store, query: URLSearchParams, waitMs: number): Promise<number> {
  const asked = parseVersion(query.get('resourceVersion'))
  const match = query.get('resourceVersionMatch')
  if (match !== null && asked === undefined)
    throw invalid(
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided'
    )
  if (match !== null && match !== 'Exact' && match !== 'NotOlderThan')
    throw invalid(`resourceVersionMatch: Unsupported value: "${match}"`)
  if (match === 'Exact' && asked === 0)
    throw invalid(
      'resourceVersionMatch: Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
    )
  await reach(store, asked ?? 0, waitMs)
  return match === 'Exact' && asked !== undefined ? asked : store.version()
}

/** One answer to a list request. `staleAt`: show this past version, whatever the request asks for (a fault). */
export async function answerList(
  store: Store,
  target: Target,
  query: URLSearchParams,
  options: { readonly waitMs: number; readonly staleAt: number | undefined }
): Promise<object> {
  const labels = query.get('labelSelector') ?? ''
  const fields = query.get('fieldSelector') ?? ''
  const match = matcher(target.resource, { namespace: target.namespace, labels, fields })
  const limit = Number(query.get('limit') ?? 0)
  const token = query.get('continue')
  const page = token ? decode(token) : undefined
  if (page && query.get('resourceVersionMatch') !== null)
    throw invalid(
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided'
    )

  const version =
    options.staleAt ?? (page ? page.version || store.version() : await moment(store, query, options.waitMs))
  const all = (() => {
    try {
      return store.snapshot(target.resource, version)
    } catch (err) {
      if (page && err instanceof ApiError && err.code === 410)
        throw continueExpired(encode({ ...page, version: 0 }))
      throw err
    }
  })()
  const keyOf = (object: (typeof all)[number]) => `${object.metadata.namespace ?? ''}/${object.metadata.name}`
  const rest = all.filter(object => match(object) && (!page || keyOf(object) > page.after))
  // The watch cache answers resourceVersion=0 with all objects, whatever the limit.
  const whole = limit <= 0 || (!page && query.get('resourceVersion') === '0')
  const items = whole ? rest : rest.slice(0, limit)
  const last = items.at(-1)
  const more = last !== undefined && rest.length > items.length
  return listOf(target.resource, items, {
    resourceVersion: `${version}`,
    ...(more ? { continue: encode({ version, after: keyOf(last) }) } : {}),
    // With a selector the API server does not count the remaining items.
    ...(more && labels === '' && fields === '' ? { remainingItemCount: rest.length - items.length } : {})
  })
}
