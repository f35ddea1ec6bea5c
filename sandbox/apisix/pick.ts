import type { Barrier } from './barrier.ts'
import type { InflightKind } from './inflight.ts'
import type { Target } from './balancer.ts'
import type { Upstream } from './upstream.ts'

/** A node that a request begins to connect to, counted in flight until it is released. */
export interface Held {
  readonly target: Target
  /** Nothing but a draining node could be picked. */
  readonly bypass: boolean
  /** May be called again: only the first time counts. */
  release(): void
  /** From an ordinary request to an upgraded connection. */
  promote(): void
}

export type Choice = { readonly kind: 'choice'; readonly target: Target; readonly bypass: boolean } | Nothing
export type Picked = { readonly kind: 'held'; readonly held: Held } | Nothing

type Nothing =
  /** No node at all. */
  | { readonly kind: 'none' }
  /** Nodes, but all of them sealed. */
  | { readonly kind: 'sealed' }
  /** All that may be picked have been tried. */
  | { readonly kind: 'tried' }

export interface PickOptions {
  readonly upstream: Upstream
  /** `undefined` where the gateway has no plugin. */
  readonly barrier: Barrier | undefined
  readonly pid: number
  readonly tried: ReadonlySet<Target>
  /** What `chash` hashes. */
  readonly key: string
}

/**
 * The pick of the access phase: avoids denied nodes, and counts nothing. The client's body may be read for minutes from
 * here on, and a request that has not begun to connect can still go elsewhere: it must hold nothing up.
 */
export function chooseNode(options: PickOptions): Choice {
  const { upstream, tried, key } = options
  const guarded = guardOf(options)
  if (upstream.targets.length === 0) return { kind: 'none' }
  return choose(upstream, guarded, tried, key)
}

/** Takes a node right before connecting to it, on the first try and on every retry: `first`, or another one. */
export function takeNode(options: PickOptions, first?: Target): Picked {
  const steps = takeSteps(options, first)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/**
 * Taking a node in the steps between which another worker, or the agent's seal, may come. The order is the guarantee:
 * count first, then look at the entry, then connect. Yields after each step.
 */
export function* takeSteps(options: PickOptions, first?: Target): Generator<void, Picked> {
  const { pid } = options
  const guarded = guardOf(options)
  let choice: Choice = first ? { kind: 'choice', target: first, bypass: false } : chooseNode(options)
  for (;;) {
    if (choice.kind !== 'choice') return choice
    const { target, bypass } = choice
    yield
    if (!guarded) {
      options.barrier?.passed(target.host, target.port)
      return { kind: 'held', held: { target, bypass: false, release() {}, promote() {} } }
    }
    const held = hold(guarded, pid, target, bypass)
    yield
    const look = guarded.entries.look(target.host, target.port)
    if (look === 'free' || (look === 'draining' && bypass)) {
      if (first && target !== first) guarded.counts.moved += 1
      if (look === 'draining') guarded.bypassed(target.host, target.port)
      return { kind: 'held', held: look === 'free' ? { ...held, bypass: false } : held }
    }
    held.release()
    yield
    choice = chooseNode(options)
  }
}

/** An unfit worker neither avoids nor counts. */
const guardOf = ({ barrier, pid }: PickOptions): Barrier | undefined =>
  barrier && barrier.unfit(pid).length === 0 ? barrier : undefined

/** A node that is avoided by nobody; else one that is only draining, because it still serves and a 503 does not. */
const choose = (
  { targets, balancer }: Upstream,
  barrier: Barrier | undefined,
  tried: ReadonlySet<Target>,
  key: string
): Choice => {
  if (!barrier || barrier.entries.size === 0) {
    const target = balancer.pick(targets, tried, key)
    return target ? { kind: 'choice', target, bypass: false } : { kind: 'tried' }
  }
  const looks = new Map(targets.map(target => [target, barrier.entries.look(target.host, target.port)]))
  const open = targets.filter(target => looks.get(target) !== 'sealed')
  if (open.length === 0) return { kind: 'sealed' }
  const undenied = open.filter(target => looks.get(target) === 'free')
  // Weight 0 is somebody's standby: a draining node that draws requests is left before it.
  const isStandby = !undenied.some(draws) && open.some(draws)
  const free = isStandby ? [] : undenied
  // A lone free node is given again on a retry, but only where it is the only one there is.
  const wanted = free.length === 1 && open.length > 1 && tried.has(free[0] as Target) ? [] : free
  const target = balancer.pick(wanted, tried, key)
  if (target) return { kind: 'choice', target, bypass: false }
  const draining = balancer.pick(
    isStandby ? open : open.filter(one => looks.get(one) === 'draining'),
    tried,
    key
  )
  return draining
    ? { kind: 'choice', target: draining, bypass: looks.get(draining) === 'draining' }
    : { kind: 'tried' }
}

const draws = ({ weight }: Target): boolean => weight > 0

const hold = (barrier: Barrier, pid: number, target: Target, bypass: boolean): Held => {
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
    release,
    promote: () => {
      if (!kind) return
      barrier.inflight.up(pid, target.host, target.port, 'long')
      release()
      kind = 'long'
    }
  }
}
