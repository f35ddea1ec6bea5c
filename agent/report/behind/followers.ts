import type { ServiceName } from '../../kubernetes/facts/slice-store.ts'

/** How many holders follow each Service. The only owner of that state. */
interface Followers {
  /** A holder follows another Service than before; `undefined`: none. */
  moved(before: ServiceName | undefined, after: ServiceName | undefined): void
  has(service: ServiceName): boolean
}

export function createFollowers(): Followers {
  const counts = new Map<string, number>()
  const add = (service: ServiceName | undefined, by: number): void => {
    if (!service) return
    const name = nameOf(service)
    const count = (counts.get(name) ?? 0) + by
    if (count > 0) counts.set(name, count)
    else counts.delete(name)
  }
  return {
    moved(before, after) {
      add(before, -1)
      add(after, 1)
    },
    has: service => counts.has(nameOf(service))
  }
}

/** `namespace/name` of a Service. */
export const nameOf = ({ namespace, name }: ServiceName): string => `${namespace}/${name}`
