import type { Barrier } from './barrier.ts'
import type { InflightKind } from './inflight.ts'
import type { Target, Upstream } from './upstream.ts'

/** A node that a request is committed to, counted in flight until it is released. */
export interface Held {
  readonly target: Target
  /** Nothing but a draining node could be picked. */
  readonly bypass: boolean
  /** May be called again: only the first time counts. */
  release(): void
  /** From an ordinary request to an upgraded connection. */
  promote(): void
}

export type Picked =
  | { readonly kind: 'held'; readonly held: Held }
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

/** Picks a node for a request, as the plugin does around APISIX's `pick_server`: on the first pick and on every retry. */
export function pickNode(options: PickOptions): Picked {
  const steps = pickSteps(options)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/**
 * The pick in the steps between which another worker, or the agent's seal, may come. The order is the guarantee: count
 * first, then look (again) at the entry. Yields after each step.
 */
export function* pickSteps(options: PickOptions): Generator<void, Picked> {
  const { upstream, barrier, pid, tried, key } = options
  const guarded = barrier && barrier.unfit(pid).length === 0 ? barrier : undefined
  if (upstream.targets.length === 0) return { kind: 'none' }
  for (;;) {
    const choice = choose(upstream, guarded, tried, key)
    if (choice.kind !== 'choice') {
      if (choice.kind === 'sealed' && guarded) guarded.counts.refused += 1
      return choice
    }
    const { target } = choice
    yield
    if (!guarded) return { kind: 'held', held: { target, bypass: false, release() {}, promote() {} } }
    const held = hold(guarded, pid, target, choice.bypass)
    yield
    const look = guarded.entries.look(target.host, target.port)
    if (look === 'free' || (look === 'draining' && choice.bypass)) {
      if (look === 'draining') guarded.bypassed(target.host, target.port)
      return { kind: 'held', held: look === 'free' ? { ...held, bypass: false } : held }
    }
    held.release()
    yield
  }
}

type Choice =
  | { readonly kind: 'choice'; readonly target: Target; readonly bypass: boolean }
  | { readonly kind: 'sealed' }
  | { readonly kind: 'tried' }

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
  const free = open.filter(target => looks.get(target) === 'free')
  // A lone free node is given again on a retry, but only where it is the only one there is.
  const wanted = free.length === 1 && open.length > 1 && tried.has(free[0] as Target) ? [] : free
  const target = balancer.pick(wanted, tried, key)
  if (target) return { kind: 'choice', target, bypass: false }
  const draining = balancer.pick(
    open.filter(one => looks.get(one) === 'draining'),
    tried,
    key
  )
  return draining ? { kind: 'choice', target: draining, bypass: true } : { kind: 'tried' }
}

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
