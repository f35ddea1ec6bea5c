import type { Barrier } from './barrier.ts'
import type { Address } from './deny-list.ts'
import type { InflightKind } from './inflight.ts'
import type { Target } from './balancer.ts'
import type { Upstream } from './upstream.ts'

/** A node that a request begins to connect to, counted in flight until it is released. */
export interface Held {
  readonly target: Target
  /** Only a draining node could be picked. */
  readonly bypass: boolean
  /** No node of the upstream is free: this successor takes over. */
  readonly isSuccessor: boolean
  /** Only the first call has an effect. */
  release(): void
  /** Turns an ordinary request into an upgraded connection. */
  promote(): void
}

type Choice =
  | {
      readonly kind: 'choice'
      readonly target: Target
      readonly bypass: boolean
      readonly isSuccessor: boolean
    }
  | Nothing
export type Picked = { readonly kind: 'held'; readonly held: Held } | Nothing

type Nothing =
  /** No node at all. */
  | { readonly kind: 'none' }
  /** Nodes, but all of them sealed. */
  | { readonly kind: 'sealed' }
  /** Every node that may be picked has been tried. */
  | { readonly kind: 'tried' }

interface PickOptions {
  readonly upstream: Upstream
  /** `undefined` if the gateway has no plugin. */
  readonly barrier: Barrier | undefined
  readonly pid: number
  readonly tried: ReadonlySet<Target>
  /** The input of `chash`. */
  readonly key: string
}

/**
 * The pick of the access phase: avoids denied nodes, and counts nothing. After it, the client's body may be read for
 * minutes. A request that has not begun to connect can still go elsewhere, so a drain does not wait for it.
 */
export function chooseNode(options: PickOptions): Choice {
  const { upstream, tried, key } = options
  const guarded = guardOf(options)
  if (upstream.targets.length === 0) return { kind: 'none' }
  return choose(upstream, guarded, tried, key)
}

/** Takes a node right before the connect, on the first try and on every retry. It prefers the node `first`. */
export function takeNode(options: PickOptions, first?: Target): Picked {
  const steps = takeSteps(options, first)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/**
 * Takes a node. Between two steps, another worker may run, or the agent's seal may arrive. The guarantee rests on the order:
 * count, then read the entry, then connect. The generator yields between the steps.
 */
export function* takeSteps(options: PickOptions, first?: Target): Generator<void, Picked> {
  const { pid, tried } = options
  const guarded = guardOf(options)
  let choice: Choice = first
    ? { kind: 'choice', target: first, bypass: false, isSuccessor: isSuccessor(first) }
    : chooseNode(options)
  for (;;) {
    if (choice.kind !== 'choice') return choice
    const { target, bypass, isSuccessor } = choice
    yield
    if (!guarded) {
      options.barrier?.passed(target.host, target.port)
      return { kind: 'held', held: { target, bypass: false, isSuccessor: false, release() {}, promote() {} } }
    }
    const held = hold(guarded, pid, target, bypass, isSuccessor)
    yield
    const look = guarded.entries.look(target.host, target.port)
    if (look === 'free' || (look === 'draining' && bypass)) {
      if (first && target !== first) guarded.counts.moved += 1
      if (isSuccessor && tried.size === 0) guarded.counts.succeeded += 1
      if (look === 'draining') guarded.bypassed(target.host, target.port)
      return { kind: 'held', held: look === 'free' ? { ...held, bypass: false } : held }
    }
    held.release()
    yield
    choice = chooseNode(options)
  }
}

/** The barrier that this worker obeys; `undefined` if it has none or is unfit: it then ignores entries and counts nothing. */
const guardOf = ({ barrier, pid }: PickOptions): Barrier | undefined =>
  barrier && barrier.unfit(pid).length === 0 ? barrier : undefined

/** A node without an entry; if there is none, a draining node, because a node that still serves is better than a 503. */
const choose = (
  { targets: drawn, balancer }: Upstream,
  barrier: Barrier | undefined,
  tried: ReadonlySet<Target>,
  key: string
): Choice => {
  if (!barrier || barrier.entries.size === 0) {
    const target = balancer.pick(drawn, tried, key)
    return target ? { kind: 'choice', target, bypass: false, isSuccessor: false } : { kind: 'tried' }
  }
  const targets = drawn.flatMap(target => [target, ...instead(target, barrier)])
  const looks = new Map(targets.map(target => [target, barrier.entries.look(target.host, target.port)]))
  const open = targets.filter(target => looks.get(target) !== 'sealed')
  if (targets.every(target => looks.get(target) !== 'free')) {
    const { free: following, draining: ending } = successorsOf(targets, barrier)
    const successor = following.some(one => !tried.has(one)) && balancer.pick(following, tried, key)
    if (successor) return { kind: 'choice', target: successor, bypass: false, isSuccessor: true }
    for (const one of ending) looks.set(one, 'draining')
    open.push(...ending)
  }
  if (open.length === 0) return { kind: 'sealed' }
  const undenied = open.filter(target => looks.get(target) === 'free')
  // A node of weight 0 is a standby: a draining node with a weight comes before it.
  const isStandby = !undenied.some(draws) && open.some(draws)
  const free = isStandby ? [] : undenied
  // A retry gets a lone free node again only if all other nodes are sealed.
  const wanted = free.length === 1 && open.length > 1 && tried.has(free[0] as Target) ? [] : free
  const target = balancer.pick(wanted, tried, key)
  if (target) return { kind: 'choice', target, bypass: false, isSuccessor: false }
  const draining = balancer.pick(
    isStandby ? open : open.filter(one => looks.get(one) === 'draining'),
    tried,
    key
  )
  return draining
    ? { kind: 'choice', target: draining, bypass: looks.get(draining) === 'draining', isSuccessor: false }
    : { kind: 'tried' }
}

/** One object for each address, so that a request recognises the addresses that it has tried. */
const known = new Map<string, Target>()

/** The successors of nodes that are all denied: the free ones, and those that are draining and still serve. */
const successorsOf = (
  targets: readonly Target[],
  { entries }: Barrier
): Record<'free' | 'draining', Target[]> => {
  const met = new Map<string, Address>()
  const free = targets.flatMap(({ host, port }) => entries.following(host, port, met))
  const draining = [...met.values()].filter(({ ip, port }) => entries.look(ip, port) === 'draining')
  return { free: free.map(targetOf), draining: draining.map(targetOf) }
}

const targetOf = ({ ip: host, port }: Address): Target => {
  const name = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  const target = known.get(name) ?? { name, host, port, weight: 1, priority: 0 }
  known.set(name, target)
  return target
}

const isSuccessor = (target: Target): boolean => known.get(target.name) === target

/** If the target is denied: the free addresses of the same name. */
const instead = ({ host, port, siblings = [] }: Target, { entries }: Barrier): readonly Target[] =>
  siblings.length > 0 && entries.look(host, port) !== 'free'
    ? siblings.filter(one => entries.look(one.host, one.port) === 'free')
    : []

const draws = ({ weight }: Target): boolean => weight > 0

const hold = (barrier: Barrier, pid: number, target: Target, bypass: boolean, isSuccessor: boolean): Held => {
  let kind: InflightKind | undefined = 'requests'
  barrier.inflight.up(pid, target.host, target.port, kind)
  const release = (): void => {
    if (!kind) return
    const was = kind
    kind = undefined
    barrier.inflight.down(pid, target.host, target.port, was)
  }
  return {
    target,
    bypass,
    isSuccessor,
    release,
    promote: () => {
      if (!kind) return
      barrier.inflight.up(pid, target.host, target.port, 'long')
      release()
      kind = 'long'
    }
  }
}
