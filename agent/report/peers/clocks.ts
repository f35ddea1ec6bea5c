import type { AckView, DrainLag, DrainView } from '../snapshot/drain-view.ts'
import type { GatewayReport } from '../../rules/drain/drain.ts'
import type { Millis } from '../../rules/drain/facts.ts'

/** One answer of another agent: its clock was read between the request and the arrival, which are by this agent's clock. */
interface Answered {
  readonly at: Millis
  readonly askedAt: Millis
  readonly heardAt: Millis
}

/**
 * How far another clock is ahead of this agent's, in ms. `known` stays while the answer allows it, so that times do not change with
 * every answer. Otherwise it is the middle of the round trip, which is wrong by half of the round trip at most.
 */
export function aheadBy(known: number, { at, askedAt, heardAt }: Answered): number {
  const [least, most] = [at - heardAt, at - askedAt]
  return known >= least && known <= most ? known : (least + most) / 2
}

/** How far the clocks of other agents are ahead, by the id of each start. Only the display uses it. */
export interface Clocks {
  /** In ms; 0 for this agent, and for a clock that is not known. */
  aheadOf(id: string): number
  /** Takes in a measured clock, and the clocks that its agent knows. The first report on a clock that was never measured stays. */
  learn(id: string, ahead: number, known: Readonly<Record<string, number>>): void
  /** All that are known. */
  all(): Readonly<Record<string, number>>
  /** The number of changes so far. */
  changes(): number
}

/** The most clocks that are kept: more than the agents whose records are kept. */
const MOST = 256

export function createClocks(): Clocks {
  const clocks = new Map<string, number>()
  let changes = 0
  const set = (id: string, ahead: number): void => {
    if (clocks.get(id) !== ahead) changes += 1
    // The oldest are dropped first.
    clocks.delete(id)
    clocks.set(id, ahead)
    for (const oldest of clocks.keys()) if (clocks.size > MOST) clocks.delete(oldest)
  }
  return {
    aheadOf: id => clocks.get(id) ?? 0,
    learn(id, ahead, known) {
      for (const [other, its] of Object.entries(known)) if (!clocks.has(other)) set(other, ahead + its)
      set(id, ahead)
    },
    all: () => Object.fromEntries(clocks),
    changes: () => changes
  }
}

/** The same object with all its times earlier by `ahead` ms. Other fields stay. */
const earlierBy = <T extends object>(times: T, ahead: number): T =>
  Object.fromEntries(
    Object.entries(times).map(([name, at]) => [name, typeof at === 'number' ? at - ahead : at])
  ) as T

/** Of a report, only times are numbers. */
const gatewaysHere = (gateways: readonly GatewayReport[], ahead: number): readonly GatewayReport[] =>
  gateways.map(report => earlierBy(report, ahead))

/** A drain of an agent whose clock is ahead by `ahead` ms, with its times by this agent's clock. `decidedAt` is Kubernetes' time. */
export function drainHere(drain: DrainView, ahead: number): DrainView {
  if (ahead === 0) return drain
  return {
    ...drain,
    witnesses: earlierBy(drain.witnesses, ahead),
    deadline: drain.deadline - ahead,
    moments: { ...earlierBy(drain.moments, ahead), decidedAt: drain.moments.decidedAt },
    gateways: gatewaysHere(drain.gateways, ahead),
    holders: drain.holders.map(holder => ({ ...holder, at: holder.at === null ? null : holder.at - ahead }))
  }
}

/** An answer, as `drainHere`. */
export const ackHere = ({ at, ack }: AckView, ahead: number): AckView => ({
  at: at - ahead,
  ack: ahead === 0 ? ack : { ...ack, gateways: gatewaysHere(ack.gateways, ahead) }
})

/** A lag, as `drainHere`; its durations stay. */
export const lagHere = (lag: DrainLag, ahead: number): DrainLag => ({ ...lag, at: lag.at - ahead })
