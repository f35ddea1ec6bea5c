import { expect } from 'chai'
import { createLingering, LINGER_MS } from '../../../agent/round/lingering.ts'
import type { PodFact } from '../../../agent/drain/facts.ts'
import type { World } from '../../../agent/plan/world.ts'
import { drainOf, seen } from '../../build/drain.ts'
import { pod, terminating } from '../../build/pod.ts'

// A request connects by the list it began with: the entry of a pod that is gone keeps it from trying that pod.

describe('lingering entries', () => {
  const ended = pod('web-1', { ...terminating(0, 30), ips: ['10.0.0.1'] })
  const worldOf = (...pods: PodFact[]): World => ({
    ownersOf: ip => pods.filter(({ ips }) => ips.includes(ip)),
    holdersOf: () => [],
    holders: () => [],
    isPodsPlace: () => false,
    portsOf: () => []
  })
  const added = (fact = ended) => {
    const lingering = createLingering()
    lingering.add(drainOf(seen(fact, { gone: true })), 1000)
    return lingering
  }

  it('stay sealed, and are not waited for', () => {
    expect(added().entries(worldOf(), 1001)).to.deep.equal([
      { uid: ended.uid, nodes: ['10.0.0.1'], state: 'sealed', watch: false }
    ])
  })

  it('end with their time', () => {
    const lingering = added()
    expect(lingering.entries(worldOf(), 999 + LINGER_MS)).to.have.length(1)
    expect(lingering.entries(worldOf(), 1000 + LINGER_MS)).to.deep.equal([])
    expect(lingering.entries(worldOf(), 1001)).to.deep.equal([])
  })

  it('end at once, and for good, when another pod has the address', () => {
    const lingering = added()
    expect(lingering.entries(worldOf(pod('web-2', { ips: ['10.0.0.1'] })), 1001)).to.deep.equal([])
    expect(lingering.entries(worldOf(), 1002)).to.deep.equal([])
  })

  it('are none for a pod on its host’s address: the next one has the same ports', () => {
    const onHost = pod('web-1', { ...terminating(0, 30), ips: ['10.0.0.1'], hostNetwork: true })
    expect(added(onHost).entries(worldOf(), 1001)).to.deep.equal([])
  })
})
