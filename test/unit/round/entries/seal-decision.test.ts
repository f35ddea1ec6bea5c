import { expect } from 'chai'
import type { BarrierReading, Word } from '../../../../agent/rules/proof/verdict.ts'
import { wordOf } from '../../../../agent/gateway/barrier/barrier-reading.ts'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import {
  desiredEntry,
  entryContext,
  SEAL_BEFORE_MS,
  sealLookAt
} from '../../../../agent/round/entries/seal-decision.ts'
import { createStatuses } from '../../../../agent/round/gather/drain-status.ts'
import { drainOf, seen } from '../../../build/drain.ts'
import { barrier } from '../../../build/evidence.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

/** Returns the nodes that the gateways bar for a drained pod, if these other pods exist. */
function barred(drained: PodFact, ...others: readonly PodFact[]) {
  const drain = { ...drainOf(seen(drained)), phase: 'gone' as const, at: 1 }
  const world = worldOf([], [drained, ...others])
  return desiredEntry(drain as never, createStatuses().of(drain.uid), {
    world,
    successors: () => ({})
  } as never)?.nodes
}

const NO_SUCCESSION = { of: () => ({}), takenFor: () => () => false, holdOf: () => 60_000 }

describe('nodes that stay barred after a drain', () => {
  const ended = { ...terminating(0), ips: ['10.0.0.1'] }

  it('are the pod’s address, until a pod that stays has it', () => {
    const drained = pod('old', ended)
    expect(barred(drained)).to.deep.equal(['10.0.0.1'])
    expect(barred(drained, pod('also-ending', ended))).to.deep.equal(['10.0.0.1'])
    expect(barred(drained, pod('next', { ips: ['10.0.0.1'], ready: false }))).to.equal(undefined)
    expect(barred(drained, pod('on the host', { ips: ['10.0.0.1'], hostNetwork: true }))).to.deep.equal([
      '10.0.0.1'
    ])
  })

  it('are free once a pod that ends later has the address, even if the first one stays Terminating or finished', () => {
    const next = pod('next', { ...ended, ...terminating(1000) })
    const deletionAt = undefined
    expect(barred(pod('stuck', ended), next)).to.equal(undefined)
    expect(barred(pod('finished', { ...ended, deletionAt, phase: 'Succeeded' }), next)).to.equal(undefined)
    expect(barred(next, pod('stuck', ended))).to.deep.equal(['10.0.0.1'])
    expect(barred(next, pod('finished', { ...ended, deletionAt, phase: 'Succeeded' }))).to.deep.equal([
      '10.0.0.1'
    ])
  })

  it('are its ports on its host’s address, until a pod that is Ready has them', () => {
    const onHost = { hostNetwork: true, containerPorts: [8080, 8081] }
    const drained = pod('old', { ...ended, ...onHost })
    const next = (differs: Partial<PodFact>) => pod('next', { ips: ['10.0.0.1'], ...onHost, ...differs })
    const both = ['10.0.0.1:8080', '10.0.0.1:8081']
    expect(barred(drained)).to.deep.equal(both)
    expect(barred(drained, next({ ready: false }))).to.deep.equal(both)
    expect(barred(drained, next(terminating(0)))).to.deep.equal(both)
    expect(barred(drained, next({ containerPorts: [9090] }))).to.deep.equal(both)
    expect(barred(drained, next({ ips: ['10.0.0.2'] }))).to.deep.equal(both)
    expect(barred(drained, next({ containerPorts: [8081] }))).to.deep.equal(['10.0.0.1:8080'])
    expect(barred(drained, next({}))).to.equal(undefined)
  })

  it('are all of its ports while the pod still serves, even if another pod has one', () => {
    const onHost = { ips: ['10.0.0.1'], hostNetwork: true, containerPorts: [8080] }
    const drain = drainOf(seen(pod('old', { ...onHost, ...terminating(0) })))
    const world = worldOf([], [drain.pod, pod('other', onHost)])
    const context = {
      world,
      cluster: { gateways: () => [] },
      successors: () => ({}),
      now: 0
    }
    expect(desiredEntry(drain, createStatuses().of(drain.uid), context as never)?.nodes).to.deep.equal([
      '10.0.0.1:8080'
    ])
  })
})

describe('entries to seal for a pod that is being drained', () => {
  const ending = pod('web-1', { ...terminating(0), ips: ['10.0.0.1'] })
  const drain = drainOf(seen(ending))
  const said = (sole: readonly string[] = [], nodes: readonly string[] = ['10.0.0.2:80']): Word =>
    wordOf([
      {
        said: 1,
        asked: 1,
        places: 1,
        sole: [...sole],
        succeeded: [],
        hidden: 0,
        others: sole.length > 0 ? [] : [{ places: 1, nodes: [...nodes], more: 0 }],
        cut: 0,
        ways: { asked: 0, found: [], more: 0 },
        tag: 'now'
      }
    ]) as Word
  const open = (word: Word | undefined, differs: Partial<BarrierReading> = {}) =>
    barrier({ entry: 'draining', readAfterSeal: false, word, ...differs })

  function round(
    readings: Readonly<Record<string, BarrierReading | undefined>>,
    others: readonly PodFact[] = [],
    lastHoldMs = 60_000
  ) {
    const status = createStatuses().of(drain.uid)
    const now = (at: number, current = readings, of: Drain = drain) => {
      const cluster = { gateways: () => Object.keys(current).map(id => ({ id })) }
      const keeper = { reading: (_: unknown, id: string) => current[id] }
      const world = worldOf([], [ending, ...others])
      const context = entryContext(
        { cluster } as never,
        keeper,
        world,
        new Map([[drain.uid, drain]]),
        { ...NO_SUCCESSION, holdOf: () => lastHoldMs },
        at,
        5000
      )
      const entry = desiredEntry(of, status, context)
      return [entry?.state, entry?.agreed && Object.fromEntries(entry.agreed)]
    }
    return { status, now }
  }

  it('are none at a gateway whose workers have not been asked', () => {
    const { status, now } = round({ g1: open(said()), g2: undefined })
    expect(now(0)).to.deep.equal(['sealed', { g1: ['now'] }])
    expect([...status.unsealed]).to.deep.equal([['g2', 'its workers have not been asked yet']])
  })

  it('are the pod’s entry at every gateway, with the words of each, when all agree', () => {
    const { status, now } = round({ g1: open(said()), g2: open(said()) })
    expect(now(0)).to.deep.equal(['sealed', { g1: ['now'], g2: ['now'] }])
    expect(status.unsealed.size).to.equal(0)
  })

  it('are none while no gateway has another node left, and do not wait for one that has none', () => {
    const sole = open(said(['routes/1']))
    const { status, now } = round({ g1: open(said()), g2: sole })
    expect(now(0, { g1: sole, g2: sole })).to.deep.equal(['draining', undefined])
    expect(now(0)).to.deep.equal(['sealed', { g1: ['now'] }])
    expect(status.unsealed.get('g2')).to.equal('nothing else is left in routes/1')
  })

  it('do not wait for holders of other namespaces for longer than their time', () => {
    const { status, now } = round({ g1: open(said(['upstreams/evil'])) })
    const evil = holder('evil', ['10.0.0.1:80'], { namespace: 'evil' })
    status.places.set('evil', { holder: evil, node: '10.0.0.1:80', removedAt: undefined })
    expect([now(4999)[0], now(5000)[0]]).to.deep.equal(['draining', 'sealed'])
    const own = round({ g1: open(said(['upstreams/own'])) })
    expect(own.now(5000)[0]).to.equal('draining')
    expect(sealLookAt(drain, 1000, 5000)).to.equal(5000)
    expect(sealLookAt(drain, 5000, 5000)).to.equal(drain.deadline - SEAL_BEFORE_MS)
  })

  it('wait 1 s for names without an answer, if one of them may lead to the pod', () => {
    const other = round({ g1: open({ ...said(), hidden: 1 }) })
    expect(other.now(0)[0], 'no such name is known').to.equal('sealed')
    const node = { node: 'web.shop.svc:80', host: 'web.shop.svc', port: 80 }
    const found = [{ way: 'web.shop', place: 'routes/r', ...node }]
    const { status, now } = round({ g1: open({ ...said(), hidden: 1, found }), g2: open(said()) })
    expect(now(999)[1]).to.deep.equal({ g2: ['now'] })
    expect([...status.unsealed]).to.deep.equal([['g1', 'a name that may lead to the pod has no answer yet']])
    expect(sealLookAt(drain, 999)).to.equal(1000)
    expect(now(1000)[1]).to.deep.equal({ g1: ['now'], g2: ['now'] })
    const answered = round({ g1: open({ ...said(), found }) })
    expect(answered.now(0)[0]).to.equal('sealed')
  })

  it('are none while all other nodes are pods that end or are not Ready', () => {
    const other = { ips: ['10.0.0.2'] }
    for (const differs of [{ ready: false }, terminating(0)])
      expect(round({ g1: open(said()) }, [pod('other', { ...other, ...differs })]).now(0)[0]).to.equal(
        'draining'
      )
    expect(round({ g1: open(said()) }, [pod('other', other)]).now(0)[0]).to.equal('sealed')
  })

  it('leave out a gateway whose words have changed, once others may be sealed', () => {
    const { now } = round({ g1: open(said()), g2: open(said()) })
    now(0)
    const changed = { g1: barrier(), g2: open(said(['routes/1'])) }
    expect(now(1, changed)).to.deep.equal(['sealed', {}])
    expect(now(2, { ...changed, g2: open(said()) })).to.deep.equal(['sealed', { g2: ['now'] }])
  })

  it('do not wait for a gateway whose barrier cannot be used', () => {
    for (const differs of [{ problem: 'refused' }, { fit: false }])
      expect(round({ g1: open(said()), g2: open(undefined, differs) }).now(0)).to.deep.equal([
        'sealed',
        { g1: ['now'] }
      ])
  })

  it('include every gateway when the deadline is near; the seal counts as forced if a gateway still needed the pod', () => {
    const at = drain.deadline - SEAL_BEFORE_MS
    expect(sealLookAt(drain, 1000)).to.equal(at)
    expect(sealLookAt(drain, at)).to.equal(undefined)
    const forced = round({ g1: open(said(['routes/1'])) })
    expect(forced.now(at - 1)).to.deep.equal(['draining', undefined])
    expect(forced.status.sealForced).to.equal(false)
    expect(forced.now(at)).to.deep.equal(['sealed', undefined])
    expect(forced.status.sealForced).to.equal(true)
    const sealed = round({ g1: barrier() })
    expect(sealed.now(at)).to.deep.equal(['sealed', undefined])
    expect(sealed.status.sealForced).to.equal(false)
  })

  it('include every gateway once no other pod may come in time, and stay sealed if one comes after all', () => {
    const [needed, unheard] = [open(said(['routes/1'])), open(undefined)]
    const { now, status } = round({ g1: open(said()), g2: needed }, [], 5000)
    expect(now(4999)).to.deep.equal(['sealed', { g1: ['now'] }])
    expect(now(5000, { g1: needed, g2: unheard })[1], 'a frozen worker').to.deep.equal({})
    expect(status.sealForced).to.equal(false)
    expect(now(5000)).to.deep.equal(['sealed', undefined])
    expect(status.sealForced).to.equal(true)
    expect(now(5001, { g1: open(said()), g2: unheard })).to.deep.equal(['sealed', undefined])
    const unready = round({ g1: open(said()) }, [pod('other', { ips: ['10.0.0.2'], ready: false })], 5000)
    expect([unready.now(4999)[0], unready.now(5000)[0]]).to.deep.equal(['draining', 'sealed'])
    now(5002, undefined, { ...drain, phase: 'undone', at: 5002, why: '' })
    expect(now(5003, { g1: needed, g2: unheard })[0], 'of the next drain').to.equal('draining')
    const sleeps = round({ g1: needed }, [], 5000)
    sleeps.status.sleepMs = 7000
    expect([sleeps.now(6999)[0], sleeps.now(7000)[0]]).to.deep.equal(['draining', 'sealed'])
  })

  it('include none by force if the grace leaves no time to hold the hook: the pod serves until it is gone (A6)', () => {
    const needed = { g1: open(said(['routes/1'])) }
    const { now, status } = round(needed)
    const short = { ...drain, deadline: drain.since }
    for (const phase of ['draining', 'expired'] as const)
      expect(now(5000, needed, { ...short, phase, at: 0 } as Drain)).to.deep.equal(['draining', undefined])
    expect(status.sealForced).to.equal(false)
    const free = { ...short, phase: 'expired', at: 0 } as Drain
    expect(now(5000, { g1: open(said()) }, free)).to.deep.equal(['sealed', { g1: ['now'] }])
    expect(now(5000, needed, { ...short, phase: 'gone', at: 0 } as Drain)[0]).to.equal('sealed')
  })

  it('include none by force because a hook got its 503 early, nor before the end of a hook’s own sleep', () => {
    const at = drain.deadline - SEAL_BEFORE_MS
    const needed = { g1: open(said(['routes/1'])) }
    const { now, status } = round(needed)
    const early = { ...drain, phase: 'expired', at: 0 } as Drain
    expect(now(at - 1, needed, early)).to.deep.equal(['draining', undefined])
    expect(sealLookAt(early, 1000)).to.equal(at)
    status.sleepMs = drain.deadline - drain.since
    expect(now(at, needed, early)[0]).to.equal('draining')
    status.sleepMs = 5000
    expect(now(at, needed, early)[0]).to.equal('sealed')
  })
})
