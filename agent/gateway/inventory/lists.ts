import { CodedError } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'
import type { AdminApi, AdminObject } from '../apisix/admin-api.ts'
import { isRecord } from '../apisix/nodes.ts'
import type { ModeState } from './mode-watch.ts'

type Lists = Pick<AdminApi, 'list' | 'pageSize'>
type Value = AdminObject['value']

/**
 * The source of the inventory, depending on the mode: the Admin API's collections, or its document. In API-driven standalone mode each
 * gateway has a document of its own. The agent reads the one that the configured Admin API answers with, because it shows the Admin API key
 * to no other address. So what it lists is evidence for one gateway only.
 */
export function createLists(
  admin: Lists & Pick<AdminApi, 'standalone'>,
  mode: { current(): Pick<ModeState, 'mode'> }
): Lists {
  const revisions = new Map<string, { readonly text: string; readonly revision: number }>()
  let shared: ReturnType<AdminApi['standalone']> | undefined
  let last = 0

  /** Collections that are requested at the same moment come from the same document. */
  const document = (signal: AbortSignal | undefined): ReturnType<AdminApi['standalone']> => {
    if (shared) return shared
    shared = admin.standalone(signal)
    queueMicrotask(() => (shared = undefined))
    return shared
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
    get pageSize() {
      // A document comes as a whole, so there is no second page.
      return mode.current().mode === 'standalone' ? Infinity : admin.pageSize
    },
    async list(resource, page, signal) {
      // While the mode is unknown, the Admin API is asked too. If APISIX is standalone, this call fails, and does not return a wrong list.
      if (mode.current().mode !== 'standalone') return admin.list(resource, page, signal)
      const all = await document(signal)
      // Not standalone any more: an empty list would mean that every holder is gone.
      if (!all) throw new CodedError('ADMIN_UNSUPPORTED', 'GET configs')
      const items = all[resource]
      const objects = (Array.isArray(items) ? items : [])
        .filter(isRecord)
        .map(value => toObject(resource, value))
      return { total: objects.length, objects }
    }
  }
}

const idOf = ({ id, username }: Value): string => {
  const given = id ?? username
  return typeof given === 'string' || typeof given === 'number' ? String(given) : ''
}
