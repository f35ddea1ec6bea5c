import { createRoundRobin } from './round-robin.ts'

/** A node as the proxy connects to it. */
export interface Target {
  /** `host:port`, IPv6 in brackets: the node's name in the access log. */
  readonly name: string
  /** The host to connect to; an IP is in its canonical form, without brackets. */
  readonly host: string
  readonly port: number
  readonly weight: number
  readonly priority: number
  /** The other addresses of its name: a request gets one of them, and the plugin replaces a denied one. */
  readonly siblings?: readonly Target[]
}

/** Chooses nodes for requests. Its only state is the order of turns. */
export interface Balancer {
  /**
   * The next of `targets` that is not in `tried`; `undefined` when all have been tried. A lone target is given even if
   * it was tried or has weight 0: APISIX does not call its balancer then. `key` is what `chash` hashes.
   */
  pick(targets: readonly Target[], tried: ReadonlySet<Target>, key: string): Target | undefined
}

/** The most sets of nodes that keep their ring of turns. One more set makes all rings start anew. */
const MOST_SETS = 64

/** `chash` is weighted rendezvous hashing, so the end of a node moves only its own keys. Every other type is roundrobin. */
export function createBalancer(type: string, random: () => number = Math.random): Balancer {
  const rings = new Map<string, () => Target | undefined>()

  const ringOf = (targets: readonly Target[]): (() => Target | undefined) => {
    const name = targets.map(target => target.name).join(' ')
    const known = rings.get(name)
    if (known) return known
    const turn = createRoundRobin(
      targets.map(target => target.weight),
      random
    )
    const ring = (): Target | undefined => targets[turn()]
    if (rings.size >= MOST_SETS) rings.clear()
    rings.set(name, ring)
    return ring
  }
  const pickAmong = (targets: readonly Target[], tried: ReadonlySet<Target>, key: string) => {
    if (targets.every(target => tried.has(target))) return undefined
    if (type === 'chash') return rendezvous(targets, tried, key)
    const next = ringOf(targets)
    // One full circle has at most this many turns. If only nodes of weight 0 are untried, a retry gets a tried node again.
    let turns = targets.reduce((sum, target) => sum + target.weight + 1, 0)
    let target = next()
    while (target && tried.has(target) && turns > 0) {
      target = next()
      turns -= 1
    }
    return target
  }
  return {
    pick: (targets, tried, key) => {
      if (targets.length <= 1) return targets[0]
      for (const level of byPriority(targets)) {
        const target = pickAmong(level, tried, key)
        if (target) return target
      }
      return undefined
    }
  }
}

/** The targets in groups of one priority, highest first. If all have the same priority, the only group is `targets` itself. */
function byPriority(targets: readonly Target[]): (readonly Target[])[] {
  const [first] = targets
  if (targets.every(target => target.priority === first?.priority)) return [targets]
  const priorities = [...new Set(targets.map(target => target.priority))].sort((a, b) => b - a)
  return priorities.map(priority => targets.filter(target => target.priority === priority))
}

function rendezvous(targets: readonly Target[], tried: ReadonlySet<Target>, key: string): Target | undefined {
  let best: Target | undefined
  let bestScore = -Infinity
  for (const target of targets) {
    if (tried.has(target)) continue
    const score = target.weight / -Math.log(unitHash(`${target.name} ${key}`))
    if (score > bestScore) [best, bestScore] = [target, score]
  }
  return best
}

/** Hashes a text into a number between 0 and 1: FNV-1a with a final mix. */
function unitHash(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  hash ^= hash >>> 16
  return ((hash >>> 0) + 0.5) / 2 ** 32
}
