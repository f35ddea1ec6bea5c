import { expect } from 'chai'
import { createLingering, LINGER_MS } from '../../../../agent/round/entries/desired.ts'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import type { World } from '../../../../agent/rules/plan/holder.ts'
import { drainOf, seen } from '../../../build/drain.ts'
import { pod, terminating } from '../../../build/pod.ts'

// A request keeps the nodes that it had at its start. So after the removal of a node, the entry must still bar the pod.

describe('lingering entries', () => {
  const ended = pod('web-1', { ...terminating(0, 30), ips: ['10.0.0.1'] })
  const successors = { '8080': ['10.0.0.2:8080'] }
  const worldOf = (...pods: PodFact[]): World => ({
    ownersOf: ip => pods.filter(({ ips }) => ips.includes(ip)),
    holdersOf: () => [],
    holders: () => [],
    isPodsPlace: () => false,
    portsOf: () => []
  })
  const isTaken = () => false
  const succession: Parameters<typeof createLingering>[0] = {
    of: (_, { successors }) => successors,
    takenFor: () => isTaken
  }
  const at = (now: number | 'unseen', isChosen = false) => ({ now, isChosen: () => isChosen, isNews: true })
  const added = (fact = ended, ports: readonly number[] = []) => {
    const lingering = createLingering(succession)
    lingering.add(drainOf(seen(fact, { gone: true })), { ports, standing: [], successors }, 1000)
    return lingering
  }

  it('stay sealed, and delay nothing', () => {
    expect(added().entries(worldOf(), new Map(), at(1001))).to.deep.equal([
      { uid: ended.uid, nodes: ['10.0.0.1'], successors, isTaken, state: 'sealed', watch: false }
    ])
  })

  it('end when their time is over', () => {
    const lingering = added()
    expect(lingering.entries(worldOf(), new Map(), at(999 + LINGER_MS))).to.have.length(1)
    expect(lingering.entries(worldOf(), new Map(), at(1000 + LINGER_MS))).to.deep.equal([])
    expect(lingering.entries(worldOf(), new Map(), at(1001))).to.deep.equal([])
  })

  it('last while a worker would choose the pod', () => {
    const lingering = added()
    const polled = (now: number) =>
      lingering.entries(worldOf(), new Map(), at(now, true)).map(({ watch }) => watch)
    expect(polled(999 + LINGER_MS)).to.deep.equal([false])
    expect(polled(1000 + LINGER_MS), 'only a poll brings words that no put has reset').to.deep.equal([true])
    expect(lingering.entries(worldOf(), new Map(), at(9 * LINGER_MS))).to.deep.equal([])
    lingering.adopt({ pod: ended, nodes: ['10.0.0.1'], standing: [] }, 0)
    expect(
      lingering.entries(worldOf(), new Map(), at(LINGER_MS - 1)),
      'no worker has been asked'
    ).to.have.length(1)
    expect(lingering.entries(worldOf(), new Map(), at(LINGER_MS, true))).to.have.length(1)
    expect(lingering.entries(worldOf(), new Map(), at(LINGER_MS))).to.deep.equal([])
  })

  it('do not end while nothing is seen, but for an address that another pod is known to have', () => {
    const lingering = added()
    expect(lingering.entries(worldOf(), new Map(), at('unseen'))).to.have.length(1)
    const next = worldOf(pod('web-2', { ips: ['10.0.0.1'] }))
    expect(lingering.entries(next, new Map(), at('unseen'))).to.deep.equal([])
  })

  it('end at once, and for good, when another pod has the address', () => {
    const lingering = added()
    expect(
      lingering.entries(worldOf(pod('web-2', { ips: ['10.0.0.1'] })), new Map(), at(1001))
    ).to.deep.equal([])
    expect(lingering.entries(worldOf(), new Map(), at(1002))).to.deep.equal([])
  })

  it('keep each port of a host until the next pod there is Ready, and then drop it for good', () => {
    const onHost = { ips: ['10.0.0.1'], hostNetwork: true }
    const lingering = added(pod('web-1', { ...terminating(0, 30), ...onHost, containerPorts: [80] }), [9000])
    const nodes = (...pods: PodFact[]) =>
      lingering.entries(worldOf(...pods), new Map(), at(1001)).flatMap(one => one.nodes)
    const next = pod('web-2', { ...onHost, containerPorts: [80] })
    expect(nodes({ ...next, ready: false })).to.deep.equal(['10.0.0.1:80', '10.0.0.1:9000'])
    expect(nodes(next)).to.deep.equal(['10.0.0.1:9000'])
    expect(nodes()).to.deep.equal(['10.0.0.1:9000'])
    expect(nodes(next, pod('web-3', { ...onHost, containerPorts: [9000] }))).to.deep.equal([])
    expect(nodes()).to.deep.equal([])
  })
})
