import { isIP } from 'node:net'

import { answersOf, type Found } from '../../rules/plan/hidden.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Holder, HolderKey, Resource } from '../../rules/plan/holder.ts'
import type { AdminObject } from '../apisix/admin-api.ts'
import { holdersOf, ownerOf, servicesOfSecond } from '../apisix/holders.ts'

interface Known {
  readonly resource: Resource
  /** Empty: the object is gone, or lists nothing. */
  readonly holders: readonly Holder[]
  readonly revision: number
  /** When the object was read alone; `undefined` if it came from a listing. */
  readonly at: Millis | undefined
}

/**
 * Every object that lists nodes. There are two sources, and either may be newer: listings, which take a while, and single objects that
 * are read meanwhile. An object that was read after a listing began is newer than this listing.
 */
export type HolderIndex = ReturnType<typeof createHolderIndex>

export function createHolderIndex() {
  const objects = new Map<string, Known>()
  const holders = new Map<HolderKey, Holder>()
  const hosts = new Map<string, Set<HolderKey>>()
  const discovered = new Map<HolderKey, Holder>()
  const names = new Set<string>()
  let ofSecond: ReadonlySet<string> = new Set()
  let version = 0
  let answered: { readonly version: number; readonly of: ReturnType<typeof answersOf> } | undefined

  const owned = (holder: Holder): Holder => {
    const owner = ownerOf(holder, ofSecond)
    return owner === holder.owner ? holder : { ...holder, owner }
  }
  const placesOf = (object: AdminObject) => holdersOf(object).map(owned)
  /** The list of services shows which upstreams controller 2.x owns (`ownerOf`). */
  const learnServices = (services: readonly AdminObject[]): void => {
    const next = servicesOfSecond(services)
    if (next.symmetricDifference(ofSecond).size === 0) return
    ofSecond = next
    for (const [name, known] of objects) {
      if (known.resource !== 'upstreams') continue
      const holders = known.holders.map(owned)
      if (holders.some((holder, i) => holder !== known.holders[i])) set(name, { ...known, holders })
    }
  }
  const drop = (holder: Holder): void => {
    holders.delete(holder.key)
    discovered.delete(holder.key)
    for (const { host } of holder.nodes) {
      const keys = hosts.get(host)
      keys?.delete(holder.key)
      if (keys?.size !== 0) continue
      hosts.delete(host)
      names.delete(host)
    }
  }
  const add = (holder: Holder): void => {
    holders.set(holder.key, holder)
    if (holder.discovery) discovered.set(holder.key, holder)
    for (const { host } of holder.nodes) {
      const keys = hosts.get(host) ?? new Set()
      hosts.set(host, keys.add(holder.key))
      if (isIP(host) === 0) names.add(host)
    }
  }
  const set = (name: string, known: Known | undefined): void => {
    version += 1
    const before = objects.get(name)?.holders ?? []
    for (const holder of before) drop(holder)
    for (const holder of known?.holders ?? []) {
      add(holder)
    }
    if (known) objects.set(name, known)
    else objects.delete(name)
  }

  const byHost = (host: string): readonly Holder[] =>
    [...(hosts.get(host) ?? [])].flatMap(key => holders.get(key) ?? [])

  return {
    /** All objects of one collection, from a listing that began at `beganAt`. */
    replace: (resource: Resource, list: readonly AdminObject[], beganAt: Millis) => {
      if (resource === 'services') learnServices(list)
      const byName = new Map(list.map(object => [`${resource}/${object.id}`, object]))
      for (const [name, known] of objects) {
        const stays = known.resource !== resource || byName.has(name) || (known.at ?? -Infinity) >= beganAt
        if (!stays) set(name, undefined)
      }
      for (const [name, object] of byName) {
        const known = objects.get(name)
        // The same revision means the same content. Most objects in a listing are unchanged.
        if (known && (known.revision === object.revision || (known.at ?? -Infinity) >= beganAt)) continue
        const found = placesOf(object)
        set(
          name,
          found.length === 0
            ? undefined
            : { resource, holders: found, revision: object.revision, at: undefined }
        )
      }
    },
    /** Takes one object that was just read. `false` if nothing changed. */
    learn(object: AdminObject, now: Millis): boolean {
      const name = `${object.resource}/${object.id}`
      const known = objects.get(name)
      const same = known !== undefined && object.revision !== 0 && object.revision === known.revision
      const holders = same ? known.holders : placesOf(object)
      if (!same) set(name, { resource: object.resource, holders, revision: object.revision, at: now })
      else objects.set(name, { ...known, at: now })
      return !same
    },
    /** Records that one object is gone. `false` if nothing changed. */
    forget(resource: Resource, id: string, now: Millis): boolean {
      const name = `${resource}/${id}`
      const had = (objects.get(name)?.holders.length ?? 0) > 0
      set(name, { resource, holders: [], revision: 0, at: now })
      return had
    },
    holders: (): ReadonlyMap<HolderKey, Holder> => holders,
    /** The holders whose nodes APISIX discovers. They list no nodes, but lead to pods. */
    discovered: (): Iterable<Holder> => discovered.values(),
    /** The domain names that holders list. */
    names: (): Iterable<string> => names,
    /** Changes whenever the answers of the other methods may change. */
    version: () => version,
    /** What the lists answer about ways to a pod. */
    answers: (way: string): readonly Found[] => {
      if (answered?.version !== version) answered = { version, of: answersOf(holders.values()) }
      return answered.of(way)
    },
    /** The holders that list this host (no brackets), at any port. */
    byHost
  }
}
