import { idOf, keyOf, resourceOf, type Item, type Store, type StoreEvent } from './store.ts'

/** The configuration as one worker has it: every worker follows etcd by its own watch. */
export interface ConfigView {
  /** The highest revision applied. */
  readonly revision: number
  get(resource: string, id: string): Item | undefined
  /** The objects in the order in which this worker learned of them: by key at its start, then as they came. */
  list(resource: string): Item[]
  apply(event: StoreEvent): void
  /** Reads everything anew, as a worker does when its watch has been broken. */
  reload(store: Store): void
  /** Calls `listener` in the step that changes an object. Without `item`, the object is gone; without a resource, only the revision is another. Returns a function to unsubscribe. */
  onChange(listener: ChangeListener): () => void
}

/** `revision`: the one that the configuration has after the step. */
type ChangeListener = (resource: string, id: string, item: Item | undefined, revision: number) => void

export function createConfigView(store: Store): ConfigView {
  const resources = new Map<string, Map<string, Item>>()
  const listeners = new Set<ChangeListener>()
  let revision = 0

  const of = (resource: string): Map<string, Item> => {
    const known = resources.get(resource) ?? new Map<string, Item>()
    resources.set(resource, known)
    return known
  }
  const tell: ChangeListener = (...change) => {
    for (const listener of listeners) listener(...change)
  }
  const view: ConfigView = {
    get revision() {
      return revision
    },
    get: (resource, id) => resources.get(resource)?.get(id),
    list: resource => [...(resources.get(resource)?.values() ?? [])],
    apply: event => {
      // A reload may already have applied an event that is still on its way.
      if (event.revision <= revision) return
      const key = event.kind === 'put' ? event.item.key : event.key
      if (event.kind === 'put') of(resourceOf(key)).set(idOf(key), event.item)
      else resources.get(resourceOf(key))?.delete(idOf(key))
      tell(resourceOf(key), idOf(key), event.kind === 'put' ? event.item : undefined, event.revision)
      revision = event.revision
    },
    reload: from => {
      for (const resource of new Set([...resources.keys(), ...from.resources()])) {
        const known = of(resource)
        for (const id of known.keys()) {
          if (from.get(keyOf(resource, id))) continue
          known.delete(id)
          tell(resource, id, undefined, from.revision)
        }
        for (const item of from.list(resource)) {
          const old = known.get(idOf(item.key))
          known.set(idOf(item.key), item)
          if (old !== item) tell(resource, idOf(item.key), item, from.revision)
        }
      }
      tell('', '', undefined, from.revision)
      revision = from.revision
    },
    onChange: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  }
  view.reload(store)
  return view
}
