import { GRADES, type GatewayReport, type Grade, type HolderReport } from '../../rules/drain/drain.ts'
import type { DrainLag, DrainView, Moments } from '../snapshot/drain-view.ts'

/**
 * Joins two agents' records of one thing. Every field is a maximum or a minimum (`unlisted` too), so neither the order of the agents
 * nor a repetition matters. Better evidence wins; of equal evidence, the earlier.
 */

type Maybe = number | null | undefined

/** The earlier of two times; a missing one is no time. */
function earlier(a: Maybe, b: Maybe): number | null {
  if (a === null || a === undefined) return b ?? null
  return b === null || b === undefined ? a : Math.min(a, b)
}

/** A missing grade ranks lowest. */
const rank = (grade: Grade | null | undefined): number => (grade ? GRADES.length - GRADES.indexOf(grade) : 0)

type Order = readonly (number | string)[]

/** The greater of two items: the first difference between their orders decides. */
function greater<T>(a: T, b: T, orderOf: (item: T) => Order): T {
  const [left, right] = [orderOf(a), orderOf(b)]
  const i = left.findIndex((part, at) => part !== right[at])
  return i === -1 || left[i]! > right[i]! ? a : b
}

/** Joins two lists of named items, by name. */
function joined<T>(
  a: readonly T[],
  b: readonly T[],
  name: (item: T) => string,
  join: (a: T, b: T) => T
): T[] {
  const all = new Map<string, T>()
  for (const item of [...a, ...b]) {
    const known = all.get(name(item))
    all.set(name(item), known ? join(known, item) : join(item, item))
  }
  return [...all].toSorted(([left], [right]) => (left < right ? -1 : 1)).map(([, item]) => item)
}

function joinGateways(a: GatewayReport, b: GatewayReport): GatewayReport {
  const { name, grade, at, why } = greater(a, b, one => [rank(one.grade), -(one.at ?? Infinity), one.why])
  const sealedAt = earlier(a.sealedAt, b.sealedAt)
  const idleAt = earlier(a.idleAt, b.idleAt)
  return {
    name,
    grade,
    at,
    ...(sealedAt !== null && { sealedAt }),
    ...(idleAt !== null && { idleAt }),
    why
  }
}

/** From the first to the last step of a removal. */
const STATES: readonly HolderReport['state'][] = [
  'listed',
  'writing',
  'failed',
  'dry-run',
  'foreign',
  'kept-last',
  'removed'
]

function joinHolders(a: DrainView['holders'][number], b: DrainView['holders'][number]) {
  const further = greater(a, b, ({ state, why }) => [STATES.indexOf(state), why])
  return { ...further, at: earlier(a.at, b.at) }
}

const PHASES: readonly DrainView['phase'][] = ['undone', 'draining', 'expired', 'proven', 'gone']

/** An agent's claim about a drain: its verdict, with the reason. */
const claim = ({ verdict, why }: DrainView): Order => [
  verdict === null ? -1 : Number(verdict.kind === 'proven'),
  rank(verdict?.grade),
  verdict?.result ?? '',
  Number(verdict?.lastEndpoint ?? false),
  why
]

const joinMoments = (a: Moments, b: Moments): Moments => ({
  decidedAt: earlier(a.decidedAt, b.decidedAt),
  seenAt: Math.min(a.seenAt, b.seenAt),
  hookAt: earlier(a.hookAt, b.hookAt),
  sliceAt: earlier(a.sliceAt, b.sliceAt),
  acceptedAt: earlier(a.acceptedAt, b.acceptedAt),
  sealedAt: earlier(a.sealedAt, b.sealedAt),
  confirmedAt: earlier(a.confirmedAt, b.confirmedAt),
  idleAt: earlier(a.idleAt, b.idleAt),
  ackAt: earlier(a.ackAt, b.ackAt),
  goneAt: earlier(a.goneAt, b.goneAt)
})

function joinWitnesses(a: DrainView['witnesses'], b: DrainView['witnesses']): DrainView['witnesses'] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].toSorted() as (keyof typeof a)[]
  return Object.fromEntries(names.map(name => [name, earlier(a[name], b[name])]))
}

/**
 * One drain as two agents know it, with all times by one clock. `hooks` is the greater number: the caller adds
 * those of different agents.
 */
export function joinDrains(a: DrainView, b: DrainView): DrainView {
  const best = greater(a, b, claim)
  const late = Math.max(a.afterAck ?? -1, b.afterAck ?? -1)
  return {
    uid: a.uid,
    namespace: a.namespace,
    pod: a.pod,
    owner: greater(a.owner, b.owner, owner => [owner ?? '']),
    ips: greater(a.ips, b.ips, ips => [ips.length, ips.join(' ')]),
    phase: greater(a.phase, b.phase, phase => [PHASES.indexOf(phase)]),
    witnesses: joinWitnesses(a.witnesses, b.witnesses),
    deadline: Math.min(a.deadline, b.deadline),
    moments: joinMoments(a.moments, b.moments),
    verdict: best.verdict,
    unlisted: a.unlisted && b.unlisted,
    why: best.why,
    longLived: greater(a.longLived, b.longLived, long =>
      long === null ? [-1] : [long.oldestMs, long.upgraded, long.sse, long.streams]
    ),
    gateways: joined(a.gateways, b.gateways, ({ name }) => name, joinGateways),
    holders: joined(a.holders, b.holders, ({ key }) => key, joinHolders),
    afterAck: late < 0 ? null : late,
    hooks: Math.max(a.hooks, b.hooks)
  }
}

/** The lag of one drain as two agents measured it: the better evidence, then the shorter time. */
export const joinLags = <T extends DrainLag>(a: T, b: T): T =>
  greater(a, b, ({ grade, ms, at, idleMs }) => [rank(grade), -ms, -at, -(idleMs ?? Infinity)])
