import { idOf, keyOf, resourceOf, type Item, type Store, type StoreEvent } from './store.ts'

/** The configuration as one worker has it: every worker follows etcd by its own watch. */
export interface ConfigView {
  /** The highest revision applied. */
  readonly revision: number
  /** When it was applied: seconds since the epoch. */
  readonly appliedAt: number
  get(resource: string, id: string): Item | undefined
  /** In the order in which this worker learned of them: by key at its start, then as they came. */
  list(resource: string): Item[]
  apply(event: StoreEvent): void
  /** Reads everything anew, as a worker does when its watch has been broken. */
  reload(store: Store): void
}

export function createConfigView(store: Store): ConfigView {
  const resources = new Map<string, Map<string, Item>>()
  let revision = 0
  let appliedAt = 0

  const of = (resource: string): Map<string, Item> => {
    const known = resources.get(resource) ?? new Map<string, Item>()
    resources.set(resource, known)
    return known
  }
  const reached = (next: number): void => {
    revision = next
    appliedAt = Date.now() / 1000
  }
  const view: ConfigView = {
    get revision() {
      return revision
    },
    get appliedAt() {
      return appliedAt
    },
    get: (resource, id) => resources.get(resource)?.get(id),
    list: resource => [...(resources.get(resource)?.values() ?? [])],
    apply: event => {
      // A reload may have brought what an event still under way tells.
      if (event.revision <= revision) return
      const key = event.kind === 'put' ? event.item.key : event.key
      if (event.kind === 'put') of(resourceOf(key)).set(idOf(key), event.item)
      else resources.get(resourceOf(key))?.delete(idOf(key))
      reached(event.revision)
    },
    reload: from => {
      for (const resource of new Set([...resources.keys(), ...from.resources()])) {
        const known = of(resource)
        for (const id of known.keys()) if (!from.get(keyOf(resource, id))) known.delete(id)
        for (const item of from.list(resource)) known.set(idOf(item.key), item)
      }
      reached(from.revision)
    }
  }
  view.reload(store)
  return view
}
