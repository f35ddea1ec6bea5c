import { expect } from 'chai'
import type { BarrierApi } from '../../../../agent/gateway/apisix/barrier-api.ts'
import { WIRE, type BarrierEntry, type BarrierState } from '../../../../agent/gateway/apisix/barrier-wire.ts'
import { createGateways } from '../../../../agent/gateway/barrier/gateways.ts'
import type { DesiredDrain } from '../../../../agent/gateway/barrier/desired-entry.ts'
import type { Millis, PodUid } from '../../../../agent/rules/drain/facts.ts'
import { silent } from '../../../build/apisix.ts'
import { GATEWAY } from '../../../build/gateway.ts'
import { manualClock, type ManualClock } from '../../../build/manual-clock.ts'

/** The life of one drain, in ms: the seal, the end of its last request, the answer of its hook, the end of its entry. */
const LIFE = { seal: 400, idle: 1000, answer: 1100, end: 20_000 }
const TEXT = 'x'.repeat(300)
/** Twice as many drains may cost this many times as much: 2 is linear, 4 is quadratic. */
const MOST = 2.3

/** A gateway in memory. Its requests end by the clock, so that every run makes the same calls. */
function gatewayOn(clock: ManualClock, idleAt: (uid: string) => Millis) {
  const held = new Map<string, Omit<BarrierEntry, 'successors'>>()
  let generation = 0
  const stateOf = (uid: string): BarrierState[] => {
    const entry = held.get(uid)
    const inflight = { requests: Number(clock.now() < idleAt(uid)), long: 0 }
    return entry ? [{ ...entry, inflight, bypasses: 0, late: 0 }] : []
  }
  const told = (uids: Iterable<string>) => {
    const entries = [...uids].flatMap(stateOf)
    return { wire: WIRE, instance: 'i', fit: true, now: clock.now() / 1000, entries } as const
  }
  const counts = { moved: 0, succeeded: 0, refused: 0, bypasses: 0, errors: 0 }
  const itself = { ...told([]), plugin: '1', unfit: [], workers: [], counts }
  /** The API as one agent calls it, and what it called. */
  return () => {
    const cost = new Map<string, { calls: number; bytes: number }>()
    const sent = <T>(what: string, asked: unknown, answer: T): T => {
      const { calls, bytes } = cost.get(what) ?? { calls: 0, bytes: 0 }
      const size = JSON.stringify([asked, answer]).length
      cost.set(what, { calls: calls + 1, bytes: bytes + size })
      return answer
    }
    const api: BarrierApi = {
      async put(entries) {
        for (const entry of entries) held.set(entry.uid, { ...held.get(entry.uid), ...entry })
        generation += entries.length
        const refused = new Set<string>()
        return sent('put', entries, { ...told(entries.map(({ uid }) => uid)), refused, why: '' })
      },
      async remove({ uids }) {
        for (const uid of uids) generation += Number(held.delete(uid))
        return sent('remove', uids, { instance: 'i' })
      },
      async inflight(uids, waitSeconds, signal) {
        const until = clock.now() + waitSeconds * 1000
        // As the plugin looks (plugin-config/apisix/drain/api.lua).
        while (clock.now() < until && !uids.some(uid => clock.now() >= idleAt(uid)))
          await clock.sleep(Math.min(100, 5 + uids.length * 0.2), signal)
        return sent('inflight', uids, { ...told(uids), unknown: [] })
      },
      state: async () => sent('state', '', { ...itself, held: { entries: held.size, generation, late: 0 } }),
      entries: async () => sent('entries', '', told(held.keys()).entries)
    }
    return { api, cost }
  }
}

/** What each of two agents costs one gateway while `count` pods end in turn, and each agent answers half of the hooks. */
async function costs(count: number, everyMs: number) {
  const clock = manualClock()
  const began = clock.now()
  const beginsAt = (i: number) => began + Math.floor(i * everyMs)
  const open = gatewayOn(clock, uid => beginsAt(Number(uid)) + LIFE.idle)
  const agents = [0, 1].map(n => {
    const { api, cost } = open()
    const own = new Map<PodUid, { readonly at: Millis; readonly text: string }>()
    const seen = new Set<number>()
    const gateways = createGateways({
      barrier: {
        api: { at: () => api, close() {} },
        answers: { own, read: list => list.forEach(({ uid, answer }) => answer && seen.add(Number(uid))) }
      },
      clock,
      log: silent
    })
    gateways.list([GATEWAY])
    return { n, cost, own, seen, gateways }
  })
  let drains: readonly DesiredDrain[] = []
  while (clock.now() < beginsAt(count) + LIFE.end + 1000) {
    clock.advance(20)
    const now = clock.now()
    const known = new Map(drains.map(drain => [drain.uid, drain]))
    const before = drains
    drains = Array.from({ length: count }, (_, i) => i).flatMap((i): DesiredDrain[] => {
      const age = now - beginsAt(i)
      if (age < 0 || age >= LIFE.end) return []
      const uid = `${i}` as PodUid
      const [state, watch] = [age < LIFE.seal ? 'draining' : 'sealed', age < LIFE.answer] as const
      const { own } = agents[i % 2]!
      if (!watch && !own.has(uid)) own.set(uid, { at: now, text: TEXT })
      const last = known.get(uid)
      if (last?.state === state && last.watch === watch) return [last]
      return [{ uid, nodes: [`10.0.${i >> 8}.${i & 255}`], state, watch }]
    })
    const isSame = drains.length === before.length && drains.every((drain, i) => drain === before[i])
    for (const { gateways } of agents) if (!isSame) gateways.barrier?.desire(drains)
    for (let i = 0; i < 3; i++) await new Promise(resolve => setImmediate(resolve))
  }
  await Promise.all(agents.map(({ gateways }) => gateways.stop()))
  for (const { n, seen } of agents) expect([...seen].filter(i => i % 2 !== n).length).to.equal(count / 2)
  return agents.map(({ cost }) => cost)
}

describe('what drains cost an agent and a gateway', () => {
  let some: Awaited<ReturnType<typeof costs>>
  before(async () => (some = await costs(250, 20)))
  for (const [how, everyMs] of [
    ['all in 5 s', 10],
    ['50 in a second', 20]
  ] as const)
    it(`grows with their number, not with its square: ${how}`, async () => {
      const twice = await costs(500, everyMs)
      for (const [i, cost] of twice.entries()) {
        expect([...cost.keys()]).to.have.members(['put', 'remove', 'inflight', 'state', 'entries'])
        for (const [what, { calls, bytes }] of cost) {
          const before = some[i]?.get(what) ?? { calls: 0, bytes: 0 }
          expect(calls / before.calls, `calls: ${what}`).to.be.below(MOST)
          expect(bytes / before.bytes, `bytes: ${what}`).to.be.below(MOST)
        }
      }
    })
})
