import { neighbourhoodOf, same } from '../../base/read.ts'
import type { Clock } from '../../base/clock.ts'
import { isOver, saysThatItEnds, withLabels } from '../../rules/drain/eligible.ts'
import type { Millis, PodFact, PodUid } from '../../rules/drain/facts.ts'
import { createMultiMap } from './pod-fact.ts'
import type { Sink } from '../reflect/follow.ts'

/** The latest state of each pod by uid, with the indexes that a drain needs. */
export type PodStore = ReturnType<typeof createPodStore>['store']

/** How long a pod that became Ready may take to reach the gateways, in ms: see `becameReady`. */
const ARRIVING_MS = 120_000
/** How many addresses of gone pods are remembered, the latest first. */
const ENDED = 50_000

/** The store, and the interface that only its reflector may use. */
export function createPodStore(clock: Clock) {
  const pods = new Map<string, PodFact>()
  const names = new Map<string, Map<string, PodFact>>()
  const ips = createMultiMap<string, PodFact>()
  const ending = new Map<string, PodFact>()
  const heard = new Map<string, Millis>()
  const readied = new Map<PodUid, Millis>()
  const tombstones = createTombstones<PodFact>(clock)
  const ended = new Map<string, Millis>()
  /** Never forgotten, because there are about as many as hosts, or a few times as many. */
  const near = new Set<string>()

  const addNear = (ip: string) => {
    const place = neighbourhoodOf(ip)
    if (place !== undefined) near.add(place)
  }
  const add = (pod: PodFact) => {
    pods.set(pod.uid, pod)
    if (!pod.hostNetwork) for (const ip of pod.ips) addNear(ip)
    const inNamespace = names.get(pod.namespace) ?? new Map<string, PodFact>()
    names.set(pod.namespace, inNamespace.set(pod.name, pod))
    for (const ip of ownedIps(pod)) {
      ips.add(ip, pod)
      ended.delete(ip)
    }
    if (saysThatItEnds(pod)) ending.set(pod.uid, pod)
    if (isOver(pod) && !pod.hostNetwork) release(pod.ips)
  }
  const remove = (pod: PodFact) => {
    pods.delete(pod.uid)
    ending.delete(pod.uid)
    for (const ip of ownedIps(pod)) ips.remove(ip, pod)
    const inNamespace = names.get(pod.namespace)
    if (inNamespace?.get(pod.name) === pod) inNamespace.delete(pod.name)
    if (inNamespace?.size === 0) names.delete(pod.namespace)
  }
  const release = (addresses: Iterable<string>) => {
    for (const ip of addresses) if (ips.get(ip).length === 0 && !ended.has(ip)) ended.set(ip, clock.now())
    for (const ip of ended.keys()) {
      if (ended.size <= ENDED) break
      ended.delete(ip)
    }
  }
  const entomb = (pod: PodFact) => {
    tombstones.add(pod.uid, pod)
    if (!pod.hostNetwork) release(pod.ips)
  }
  const bury = (pod: PodFact, last: PodFact | undefined) => {
    remove(pod)
    heard.delete(pod.uid)
    readied.delete(pod.uid)
    entomb(last ? withLabels(last, pod, clock.now()) : pod)
  }

  const set = (fact: PodFact) => {
    const before = pods.get(fact.uid)
    const pod = withLabels(fact, before, clock.now())
    if (before && same(before, pod)) return false
    // A name belongs to one pod at a time, so its previous pod is gone, even if its DELETED was lost in a relist.
    const namesake = names.get(pod.namespace)?.get(pod.name)
    if (namesake && namesake.uid !== pod.uid) bury(namesake, undefined)
    if (before) remove(before)
    tombstones.remove(pod.uid)
    if (pod.deletionAt !== undefined && !heard.has(pod.uid)) heard.set(pod.uid, clock.now())
    if (!pod.ready || saysThatItEnds(pod)) readied.delete(pod.uid)
    else if (before && !before.ready) readied.set(pod.uid, clock.now())
    add(pod)
    return true
  }
  const gone = (uid: string, last: PodFact | undefined) => {
    const pod = pods.get(uid)
    if (pod) bury(pod, last)
    // Created and deleted between two lists, without an event: its hook may still call.
    else if (last && !tombstones.get(uid)) entomb(last)
    return pod !== undefined
  }

  const sink: Sink<PodFact> = { set, gone }
  return {
    sink,
    store: {
      get: (uid: PodUid) => pods.get(uid),
      /**
       * Every pod that owns this address (without brackets). There are several if they share their host's network, and for a moment when
       * another pod gets the address. A pod whose containers have ended no longer owns its address.
       */
      byIp: (ip: string) => ips.get(ip),
      byName: (namespace: string, name: string) => names.get(namespace)?.get(name),
      /** Pods whose own object shows that they end: deleted, Failed or Succeeded. */
      ending: (): readonly PodFact[] => [...ending.values()],
      /** A pod whose object is gone, for at most an hour. */
      gone: (uid: PodUid) => tombstones.get(uid),
      /** When the last pod with this address was gone, or its containers had ended. `undefined`: a pod has it, none is remembered, or it is a host's. */
      endedAt: (ip: string) => ended.get(ip),
      /** The pods with these addresses have ended, as another source knows: they were gone before this agent began. */
      haveEnded: release,
      /** Whether a pod with an address of its own was seen in the same /24 (IPv4) or /64 (IPv6). */
      isNear: (ip: string) => near.has(neighbourhoodOf(ip) ?? ''),
      /** When the agent saw this pod's deletion; only while its object exists. */
      deletionHeardAt: (uid: PodUid) => heard.get(uid),
      /** Pods that became Ready and do not end, with the time at which the agent saw it; for two minutes. */
      becameReady: (): ReadonlyMap<PodUid, Millis> => {
        const now = clock.now()
        for (const [uid, at] of readied) if (now - at > ARRIVING_MS) readied.delete(uid)
        return readied
      },
      /** Pods whose objects were gone at or after this time, newest first: the only trace of a pod deleted without grace. */
      goneSince: (at: Millis) => tombstones.since(at),
      values: () => pods.values(),
      get size() {
        return pods.size
      }
    }
  }
}

function ownedIps(pod: PodFact): readonly string[] {
  return pod.hostNetwork || !isOver(pod) ? pod.ips : []
}

/** The last fact of an object that is gone. */
interface Tombstone<F> {
  readonly at: Millis
  readonly fact: F
}

/** Bounded by number and by age: a hook may call after its pod's object is gone, but not an hour later. */
export function createTombstones<F>(clock: Clock, most = 10_000, maxAgeMs = 3_600_000) {
  // A Map iterates in the order of insertion, so the oldest are always first.
  const stones = new Map<string, Tombstone<F>>()
  const expired = (stone: Tombstone<F>) => clock.now() - stone.at > maxAgeMs
  const sweep = () => {
    for (const [uid, stone] of stones) {
      if (stones.size <= most && !expired(stone)) return
      stones.delete(uid)
    }
  }
  return {
    add(uid: string, fact: F) {
      stones.delete(uid)
      stones.set(uid, { at: clock.now(), fact })
      sweep()
    },
    get(uid: string) {
      const stone = stones.get(uid)
      return stone && !expired(stone) ? stone : undefined
    },
    /** Objects gone at or after this time, newest first. */
    since: (at: Millis): readonly Tombstone<F>[] =>
      stones
        .values()
        .filter(stone => stone.at >= at)
        .toArray()
        .toReversed(),
    remove: (uid: string) => void stones.delete(uid)
  }
}
