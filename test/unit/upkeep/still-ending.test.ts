import { expect } from 'chai'
import type { Drain } from '../../../agent/drain/drain.ts'
import type { PodFact } from '../../../agent/drain/facts.ts'
import { begin } from '../../../agent/drain/step.ts'
import { createStillEnding } from '../../../agent/upkeep/still-ending.ts'
import { DRAIN_SETTINGS, proven, seen } from '../../build/drain.ts'
import { pod, terminating } from '../../build/pod.ts'

const old = pod('old', terminating(0))
const draining = begin(seen(old), 0, DRAIN_SETTINGS) as Drain
const acked = { ...draining, phase: 'proven', at: 10, verdict: proven() } as Drain

interface Server {
  /** What has the name of the pod that ends; default nobody. */
  readonly itself?: PodFact
  /** `undefined`: to that question there is no answer. */
  readonly owners: readonly PodFact[] | undefined
  /** The watch shows while it is asked that the address is another pod's. */
  readonly overtaken?: boolean
  /** This process was away, and the watch has not shown since that it is not behind. */
  readonly away?: boolean
}

/** Asked about the address of `drain`, where this is what the API server says; `undefined`: it says nothing. */
function ask(drain: Drain | undefined, server: Server | undefined, isEnding = true) {
  const asked: string[] = []
  const doubts: string[] = []
  const stillEnding = createStillEnding({
    loop: () => ({ isEnding: () => isEnding, drains: () => new Map(drain ? [[drain.uid, drain]] : []) }),
    cluster: () => ({ verifyWatch: part => doubts.push(part), podsAssuredAt: () => 10 }),
    resumedAt: () => (server?.away ? 20 : -Infinity),
    asking: {
      async pod({ name }) {
        asked.push(name)
        return server && { pod: server.itself }
      },
      async ownersOf(ip) {
        asked.push(ip)
        if (server?.overtaken) isEnding = false
        return server?.owners
      }
    }
  })
  return { answer: stillEnding(old.uid, '10.0.0.1:8080'), asked, doubts }
}

describe('still ending', () => {
  it('asks nobody about a pod that was seen to be deleted, before its hook is answered: it is there', async () => {
    const { answer, asked } = ask(draining, { owners: [] })
    expect(await answer).to.equal(true)
    expect(asked).to.deep.equal([])
  })

  it('asks about it all the same when this process was away: the pod may be gone by now, and its address another pod’s', async () => {
    const next = pod('next', { ips: old.ips })
    const { answer, asked } = ask(draining, { owners: [next], away: true })
    expect(await answer).to.equal(false)
    expect(asked).to.deep.equal(['old', '10.0.0.1'])
  })

  it('asks nobody about a drain that is over, or an address that the watch knows to be another pod’s', async () => {
    expect(await ask(undefined, { owners: [] }).answer).to.equal(false)
    expect(await ask(acked, { owners: [] }, false).answer).to.equal(false)
  })

  it('asks for the pod alone while that is there: whose address it is costs a look at every pod', async () => {
    const { answer, asked } = ask(acked, { itself: old, owners: [pod('next')] })
    expect(await answer).to.equal(true)
    expect(asked).to.deep.equal(['old'])
  })

  it('guards the address of a pod that has ended, or is gone, while it is its own, or nobody’s', async () => {
    const ended = { ...old, phase: 'Failed' } as const
    const job = pod('job', { phase: 'Succeeded' })
    for (const itself of [undefined, ended, { ...old, uid: pod('next').uid }]) {
      for (const owners of [[], [old], [job], [old, pod('next', terminating(5))]]) {
        const { answer, asked } = ask(acked, { ...(itself && { itself }), owners })
        expect(await answer).to.equal(true)
        expect(asked).to.deep.equal(['old', '10.0.0.1'])
      }
    }
  })

  it('leaves a new pod alone that a silent watch has not shown, and doubts the watch', async () => {
    const { answer, doubts } = ask(acked, { owners: [pod('next')] })
    expect(await answer).to.equal(false)
    expect(doubts).to.deep.equal(['pods'])
  })

  it('leaves the node alone for now where the API server cannot be asked', async () => {
    expect(await ask(acked, undefined).answer).to.equal(undefined)
    expect(await ask(acked, { owners: undefined }).answer).to.equal(undefined)
  })

  it('goes by what the watch has shown while the API server was asked', async () => {
    expect(await ask(acked, { owners: [], overtaken: true }).answer).to.equal(false)
  })

  it('takes a pod’s own word where only others say that it ends (a slice, a condition), before the answer too', async () => {
    const hinted = begin(seen(pod('old'), { sliceTerminating: true }), 0, DRAIN_SETTINGS) as Drain
    const said = (itself: PodFact) => ask(hinted, { itself, owners: [] }).answer
    expect(await said(pod('old', terminating(0)))).to.equal(true)
    expect(await said(pod('old', { disruptionTarget: true }))).to.equal(true)
    expect(await said(pod('old'))).to.equal(undefined)
    expect(await ask(hinted, { owners: [] }).answer).to.equal(true)
    expect(await ask(hinted, undefined).answer).to.equal(undefined)
  })

  it('an address that is its host’s is another pod’s where that has the port', async () => {
    const host = { hostNetwork: true, containerPorts: [8080] }
    const gone = { ...acked, pod: pod('old', host) }
    expect(await ask(gone, { owners: [pod('next', host)] }).answer).to.equal(false)
    const beside = pod('proxy', { ...host, containerPorts: [10_256] })
    expect(await ask(gone, { owners: [beside] }).answer).to.equal(true)
  })
})
