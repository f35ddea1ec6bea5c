import { wordOf } from '../../agent/gateway/barrier/barrier-reading.ts'
import type { Drain } from '../../agent/rules/drain/drain.ts'
import type { PodFact } from '../../agent/rules/drain/facts.ts'
import type { BarrierReading } from '../../agent/rules/proof/verdict.ts'
import { desiredEntry, entryContext, sealLookAt } from '../../agent/round/entries/seal-decision.ts'
import { createStatuses, type Status } from '../../agent/round/gather/drain-status.ts'
import { drainOf, seen } from './drain.ts'
import { barrier } from './evidence.ts'
import { holder } from './holder.ts'
import { WORD } from './members.ts'
import { pod, terminating } from './pod.ts'
import { worldOf } from './world.ts'

/** `sealed`, or one that is not sealed: by the places that have no other node, `[]` for none, and by what else differs. `null`: not asked yet. */
type Reading =
  'sealed' | null | (Partial<BarrierReading> & { sole?: readonly string[]; hidden?: number; found?: true })

interface Round {
  readonly now: number
  readonly gateways?: Readonly<Record<string, Reading>>
  readonly drain?: Partial<Drain>
}

const FOUND = [
  { way: 'web.shop', place: 'routes/r', node: 'web.shop.svc:80', host: 'web.shop.svc', port: 80 }
]

const readingOf = (given: Reading): BarrierReading | undefined => {
  if (given === null) return undefined
  if (given === 'sealed') return barrier()
  const { sole, hidden = 0, found, ...differs } = given
  const word =
    sole && wordOf([{ ...WORD, said: 1, asked: 1, sole: [...sole], ...(sole.length > 0 && { others: [] }) }])
  return barrier({
    entry: 'draining',
    readAfterSeal: false,
    word: word && { ...word, hidden, ...(found && { found: FOUND }) },
    ...differs
  })
}

/** In a case, `ends: 0` is a deletion at that time. */
type Draft = Partial<PodFact> & { ends?: number | null }
const factOf = (name: string, { ends, ...differs }: Draft): PodFact =>
  pod(name, { ...(typeof ends === 'number' && terminating(ends)), ...differs })

/** The entry of a pod that ends, round by round: its state, its nodes unless they are the pod's address, the gateways that may seal, and why others may not. */
export function entering(given: {
  pod?: Draft
  drain?: Partial<Drain>
  others?: Readonly<Record<string, Draft>>
  /** Holders of another namespace that list the pod. */
  foreign?: readonly string[]
  foreignHoldMs?: number
  lastHoldMs?: number
  status?: Partial<Status>
  gateways?: Readonly<Record<string, Reading>>
  rounds?: readonly Round[]
}) {
  const {
    drain: differs,
    others = {},
    foreign = [],
    foreignHoldMs,
    lastHoldMs = 60_000,
    rounds = [{ now: 0 }]
  } = given
  const drained = factOf('web-1', { ends: 0, ...given.pod })
  const drain = { ...drainOf(seen(drained, { gone: differs?.phase === 'gone' })), ...differs } as Drain
  const status = Object.assign(createStatuses().of(drain.uid), given.status)
  for (const id of foreign) {
    const evil = holder(id, ['10.0.0.1:80'], { namespace: 'evil' })
    status.places.set(id, { holder: evil, node: '10.0.0.1:80', removedAt: undefined })
  }
  const world = worldOf([], [drained, ...Object.entries(others).map(([name, other]) => factOf(name, other))])
  return rounds.map(({ now, gateways = given.gateways ?? {}, drain: later }) => {
    const context = entryContext({
      cluster: { gateways: () => Object.keys(gateways).map(id => ({ id })) as never },
      barrier: { reading: (_, id) => readingOf(gateways[id] ?? null) },
      world,
      drains: new Map([[drain.uid, drain]]),
      succession: { of: () => ({}), takenFor: () => () => false, holdOf: () => lastHoldMs },
      now,
      held: new Set(),
      foreignHoldMs
    })
    const entry = desiredEntry({ ...drain, ...later } as Drain, status, context)
    if (!entry) return 'none'
    const nodes = entry.nodes.join() === '10.0.0.1' ? '' : ` ${entry.nodes.join(' ')}`
    const agreed = entry.agreed ? ` at ${[...entry.agreed.keys()].join(' and ') || 'no gateway'}` : ''
    const forced = status.sealForced ? ' (forced)' : ''
    const unsealed = [...status.unsealed].map(([id, why]) => `; ${id}: ${why}`)
    const looksAt = sealLookAt({ ...drain, ...later } as Drain, now, foreignHoldMs) ?? 'never'
    return `${entry.state}${nodes}${agreed}${forced}${unsealed.join('')}; again at ${looksAt}`
  })
}
