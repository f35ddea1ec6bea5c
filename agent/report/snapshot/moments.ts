import type { Drain, Proven } from '../../rules/drain/drain.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { Moments } from './drain-view.ts'
import type { Memory } from '../../round/gather/memory.ts'
import { latest } from '../../rules/drain/times.ts'

/** When the last holder dropped the pod; `undefined` while one lists it, or if none ever did. */
const acceptedAt = ({ places }: Memory): Millis | undefined =>
  latest([...places.values()].map(place => place.removedAt))

/** The round that begins a drain runs a little after its event, and later on a busy machine. */
const seenAt = ({ since }: Drain, { heardAt }: Memory): Millis => Math.min(since, heardAt ?? since)

/** When the last gateway confirmed; the round that combines the reports of the gateways runs later. */
const confirmedAt = ({ at, gateways }: Proven): Millis =>
  Math.min(at, latest(gateways.map(gateway => gateway.at)) ?? at)

/** When the last request had ended at the last gateway, by the gateways' own times if they report them. */
const idleAt = ({ at, gateways }: Proven): Millis =>
  Math.min(at, latest(gateways.map(gateway => gateway.idleAt ?? gateway.at)) ?? at)

/** When the last gateway sealed the pod; `undefined` while one has not, or if one cannot. */
const sealedAt = (drain: Drain): Millis | undefined => {
  const gateways = drain.phase === 'undone' ? [] : drain.verdict.gateways
  return gateways.every(gateway => gateway.sealedAt !== undefined)
    ? latest(gateways.map(gateway => gateway.sealedAt))
    : undefined
}

/** All moments on the time line of one drain. */
export function momentsOf(drain: Drain, memory: Memory): Moments {
  const proven = drain.phase !== 'undone' && drain.verdict.kind === 'proven' ? drain.verdict : undefined
  return {
    decidedAt: drain.decidedAt ?? null,
    seenAt: seenAt(drain, memory),
    hookAt: memory.hookAt ?? null,
    sliceAt: memory.sliceAt ?? null,
    acceptedAt: acceptedAt(memory) ?? null,
    sealedAt: sealedAt(drain) ?? null,
    confirmedAt: proven ? confirmedAt(proven) : null,
    idleAt: proven?.grade === 'barrier' ? idleAt(proven) : null,
    ackAt: memory.ackAt ?? null,
    goneAt: drain.phase === 'gone' ? drain.at : null
  }
}
