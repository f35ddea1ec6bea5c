import { expect } from 'chai'
import type { Drain } from '../../../agent/drain/drain.ts'
import type { PodFact } from '../../../agent/drain/facts.ts'
import { begin } from '../../../agent/drain/step.ts'
import { createStillEnding } from '../../../agent/loop/still-ending.ts'
import { DRAIN_SETTINGS, proven, seen } from '../../build/drain.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { pod, terminating } from '../../build/pod.ts'
import { memoryLog } from '../../build/serve.ts'

const old = pod('old', terminating(0))
const draining = begin(seen(old), 0, DRAIN_SETTINGS) as Drain
const acked = { ...draining, phase: 'proven', at: 10, verdict: proven() } as Drain

interface Server {
  /** What has the name of the pod that ends; default nobody. */
  readonly itself?: PodFact
  readonly owners: readonly PodFact[] | Error
}

/** Asked about the address of `drain`, which the API server says these pods have. */
function ask(drain: Drain | undefined, { itself, owners }: Server, isEnding = true) {
  const asked: string[] = []
  const doubts: string[] = []
  const stillEnding = createStillEnding({
    clock: manualClock(),
    log: memoryLog().log,
    loop: () => ({ isEnding: () => isEnding, drains: () => new Map(drain ? [[drain.uid, drain]] : []) }),
    cluster: () => ({
      doubt: part => doubts.push(part),
      async fetchPod(_namespace, name) {
        asked.push(name)
        if (owners instanceof Error) throw owners
        return itself
      },
      async fetchPodsByIp(ip) {
        asked.push(ip)
        return owners as readonly PodFact[]
      }
    })
  })
  return { answer: stillEnding(old.uid, '10.0.0.1:8080'), asked, doubts }
}

describe('still ending', () => {
  it('asks nobody before the hook is answered: the pod is there', async () => {
    const { answer, asked } = ask(draining, { owners: [] })
    expect(await answer).to.equal(true)
    expect(asked).to.deep.equal([])
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
    for (const itself of [undefined, ended, { ...old, uid: pod('next').uid }]) {
      for (const owners of [[], [old], [old, pod('next', terminating(5))]]) {
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

  it('leaves the node alone where the API server cannot be asked', async () => {
    expect(await ask(acked, { owners: new Error('refused') }).answer).to.equal(false)
  })
})
