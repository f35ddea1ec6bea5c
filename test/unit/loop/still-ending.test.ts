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

/** Asked about the address of `drain`, which the API server says these pods have. */
function ask(drain: Drain | undefined, owners: readonly PodFact[] | Error, isEnding = true) {
  const asked: string[] = []
  const doubts: string[] = []
  const stillEnding = createStillEnding({
    clock: manualClock(),
    log: memoryLog().log,
    loop: () => ({ isEnding: () => isEnding, drains: () => new Map(drain ? [[drain.uid, drain]] : []) }),
    cluster: () => ({
      doubt: part => doubts.push(part),
      async fetchPodsByIp(ip) {
        asked.push(ip)
        if (owners instanceof Error) throw owners
        return owners
      }
    })
  })
  return { answer: stillEnding(old.uid, '10.0.0.1:8080'), asked, doubts }
}

describe('still ending', () => {
  it('asks nobody before the hook is answered: the pod is there', async () => {
    const { answer, asked } = ask(draining, [])
    expect(await answer).to.equal(true)
    expect(asked).to.deep.equal([])
  })

  it('asks nobody about a drain that is over, or an address that the watch knows to be another pod’s', async () => {
    expect(await ask(undefined, []).answer).to.equal(false)
    expect(await ask(acked, [], false).answer).to.equal(false)
  })

  it('guards the address while it is the old pod’s, or nobody’s', async () => {
    for (const owners of [[], [old], [old, pod('next', terminating(5))]]) {
      const { answer, asked } = ask(acked, owners)
      expect(await answer).to.equal(true)
      expect(asked).to.deep.equal(['10.0.0.1'])
    }
  })

  it('leaves a new pod alone that a silent watch has not shown, and doubts the watch', async () => {
    const { answer, doubts } = ask(acked, [pod('next')])
    expect(await answer).to.equal(false)
    expect(doubts).to.deep.equal(['pods'])
  })

  it('leaves the node alone where the API server cannot be asked', async () => {
    expect(await ask(acked, new Error('refused')).answer).to.equal(false)
  })
})
