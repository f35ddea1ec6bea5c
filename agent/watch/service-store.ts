import type { ServiceFact } from '../drain/facts.ts'
import { same } from './same.ts'
import type { Sink } from './sink.ts'

/** The Services that ask something of us by an annotation. */
export interface ServiceStore {
  /** The same list until something in it changes. */
  asking(): readonly ServiceFact[]
}

/** The store, and the side of it that only its reflector may use. */
export function createServiceStore(): { readonly store: ServiceStore; readonly sink: Sink<ServiceFact> } {
  const services = new Map<string, ServiceFact>()
  let asking: readonly ServiceFact[] = []
  const changed = () => {
    asking = [...services.values()]
    return true
  }
  const gone = (uid: string) => services.delete(uid) && changed()
  return {
    sink: {
      set(service) {
        if (Object.keys(service.annotations).length === 0) return gone(service.uid)
        if (same(services.get(service.uid), service)) return false
        services.set(service.uid, service)
        return changed()
      },
      gone
    },
    store: { asking: () => asking }
  }
}
