import type { ServiceFact } from '../../rules/drain/facts.ts'
import { keysOfName } from '../../rules/plan/service-names.ts'
import { createMultiMap } from './multi-map.ts'
import { same } from '../../base/same.ts'
import type { Sink } from '../reflect/watch-event.ts'

/** The Services: those with the agent's annotations, and the addresses and names that lead to their pods. */
export interface ServiceStore {
  /** Services with an annotation of the agent. The same list until one of them changes. */
  asking(): readonly ServiceFact[]
  byName(namespace: string, name: string): ServiceFact | undefined
  /** Services that only alias another name (type ExternalName), if that name has this key (`keysOfName`). */
  aliasesTo(key: string): readonly ServiceFact[]
  isNodePort(port: number): boolean
}

/** The store, and the interface that only its reflector may use. */
export function createServiceStore(): { readonly store: ServiceStore; readonly sink: Sink<ServiceFact> } {
  const services = new Map<string, ServiceFact>()
  const names = new Map<string, ServiceFact>()
  const aliases = createMultiMap<string, ServiceFact>()
  const byNodePort = createMultiMap<number, ServiceFact>()
  const targetsOf = ({ externalName }: ServiceFact) =>
    externalName === undefined ? [] : keysOfName(externalName)
  let asking: readonly ServiceFact[] = []
  const changed = (...changed: readonly (ServiceFact | undefined)[]) => {
    if (changed.some(service => service && asks(service))) asking = [...services.values()].filter(asks)
    return true
  }
  const drop = (uid: string): ServiceFact | undefined => {
    const service = services.get(uid)
    if (!service) return undefined
    services.delete(uid)
    for (const key of targetsOf(service)) aliases.remove(key, service)
    for (const port of service.nodePorts ?? []) byNodePort.remove(port, service)
    if (names.get(nameOf(service))?.uid === uid) names.delete(nameOf(service))
    return service
  }
  return {
    sink: {
      set(service) {
        const before = services.get(service.uid)
        if (same(before, service)) return false
        drop(service.uid)
        services.set(service.uid, service)
        names.set(nameOf(service), service)
        for (const key of targetsOf(service)) aliases.add(key, service)
        for (const port of service.nodePorts ?? []) byNodePort.add(port, service)
        return changed(before, service)
      },
      gone(uid) {
        const service = drop(uid)
        return service !== undefined && changed(service)
      }
    },
    store: {
      asking: () => asking,
      byName: (namespace, name) => names.get(nameOf({ namespace, name })),
      aliasesTo: key => aliases.get(key),
      isNodePort: port => byNodePort.get(port).length > 0
    }
  }
}

const asks = ({ annotations }: ServiceFact): boolean => Object.keys(annotations).length > 0
const nameOf = ({ namespace, name }: Pick<ServiceFact, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`
