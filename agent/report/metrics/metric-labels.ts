import type { Ack } from '../../rules/drain/ack.ts'
import type { Drain } from '../../rules/drain/drain.ts'
import type { LongLived } from '../../rules/drain/long-lived.ts'
import type { Kept } from '../../rules/plan/change.ts'

/** The keys of a record that has every member of a union, and no other. */
export const keysOf = <K extends string>(values: Readonly<Record<K, unknown>>) => Object.keys(values) as K[]

/** What proves a drain, or that nothing does. */
export const EVIDENCE = ['barrier', 'observed', 'none'] as const satisfies readonly Ack['evidence'][]
/** The evidence that each result of a hook can have. */
export const ANSWERS: Readonly<Record<Ack['result'], readonly Ack['evidence'][]>> = {
  drained: ['barrier', 'observed'],
  unproved: ['none'],
  stays: ['none']
}
/** The phases of a drain. */
export const PHASES = keysOf({
  draining: 1,
  proven: 1,
  expired: 1,
  undone: 1,
  gone: 1
} satisfies Record<Drain['phase'], unknown>)
/** The kinds of requests that do not end by themselves. */
export const LONG_LIVED = keysOf({
  upgraded: 1,
  sse: 1,
  streams: 1
} satisfies Record<Exclude<keyof LongLived, 'oldestMs'>, unknown>)
/** Why the node of an ending pod stays listed. */
export const KEPT_REASONS = keysOf({
  'last-node': 1,
  discovery: 1,
  standalone: 1,
  owner: 1,
  'fixed-address': 1,
  'dry-run': 1,
  'address-unknown': 1
} satisfies Record<Kept['why'], 1>)
/** The decisions of the plugin about requests. */
export const DECISIONS = ['moved', 'succeeded', 'refused', 'bypassed', 'late', 'error'] as const
export const RESULTS = keysOf(ANSWERS)
export const DIRECTIONS = ['removal', 'arrival'] as const
export const WATCHES = ['pods', 'endpointslices', 'gateways'] as const
export const OK = ['ok', 'error'] as const
export const ADMIN_CALLS = ['list', 'get', 'patch', 'put', 'standalone'] as const
export const BARRIER_CALLS = ['put', 'remove', 'inflight', 'state', 'entries'] as const
/** The label values of a first rollout in most clusters: the histogram series that begin with 0. */
export const USUAL_RESULTS = ['drained', 'unproved'] as const satisfies readonly Ack['result'][]

/** Why a routed workload has no safe hook. */
export const UNSAFE = ['without', 'bare', 'early'] as const
