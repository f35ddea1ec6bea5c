import { expect } from 'chai'
import type { PodUid } from '../../../agent/rules/drain/facts.ts'
import { identify, type Caller } from '../../../agent/hook/identify.ts'
import { pod } from '../../build/pod.ts'
import { manualHolds } from '../../build/serve.ts'

describe('identify', () => {
  const web = pod('web-1', { ips: ['10.0.0.7', 'fd00::7'] })
  const other = pod('web-2', { ips: ['10.0.0.8'] })
  const [agentA, agentB] = ['a', 'b'].map(name => pod(name, { ips: ['192.168.1.5'], hostNetwork: true }))
  const holds = () => {
    const found = manualHolds(web, other, ...[agentA, agentB].filter(found => found !== undefined))
    found.behind.push(pod('late', { ips: ['10.0.0.9'] }))
    return found
  }
  const ask = (caller: Partial<Caller>, { pods = holds(), signal = new AbortController().signal } = {}) =>
    identify({ address: '10.0.0.7', named: undefined, uid: undefined, ...caller }, pods, signal)
  const named = (name: string, namespace = 'shop') => ({ namespace, name })
  const HOST = '192.168.1.5'
  const STRANGER = '172.16.0.1'

  const accepted: Record<string, [caller: Partial<Caller>, name: string]> = {
    'a pod by its address': [{}, 'web-1'],
    'a pod by its second address': [{ address: 'fd00::7' }, 'web-1'],
    'a pod that names itself': [{ named: named('web-1') }, 'web-1'],
    'a pod that names its uid too': [{ uid: 'uid-web-1' }, 'web-1'],
    'a host network pod that gives its uid': [{ address: HOST, uid: 'uid-b' }, 'b'],
    'the kubelet for a pod that shares its host with others': [
      { address: HOST, named: named('late') },
      'late'
    ],
    'a host network pod that names itself': [{ address: HOST, named: named('b') }, 'b'],
    'the kubelet for a pod of its host': [{ address: HOST, named: named('web-1') }, 'web-1'],
    'an unknown address for a named pod': [{ address: STRANGER, named: named('web-1') }, 'web-1'],
    'a pod that only the API server knows': [{ address: STRANGER, named: named('late') }, 'late'],
    'a pod that the watch has not seen yet, by its address': [{ address: '10.0.0.9' }, 'late'],
    'a pod that the watch has not seen yet, by its address and name': [
      { address: '10.0.0.9', named: named('late') },
      'late'
    ]
  }
  for (const [what, [caller, name]] of Object.entries(accepted)) {
    it(`accepts ${what}`, async () => {
      const identity = await ask(caller)
      expect(identity.ok ? identity.pod.name : identity.why).to.equal(name)
    })
  }

  const refused: Record<string, [caller: Partial<Caller>, error: string, why: RegExp]> = {
    'a pod that names another': [
      { named: named('web-2') },
      'forbidden',
      /10.0.0.7 belongs to shop\/web-1, and a pod can only drain itself/
    ],
    'a pod that names its own name in another namespace': [
      { named: named('web-1', 'bank') },
      'forbidden',
      /belongs to shop\/web-1/
    ],
    'an address that no pod has': [
      { address: STRANGER },
      'unknown-pod',
      /no pod with the address 172.16.0.1 is known; source NAT and proxies .*add \?namespace=&pod=/
    ],
    'an address that several pods share with their host': [
      { address: HOST },
      'not-named',
      /192.168.1.5 is the address of a host; source NAT and proxies .*add \?namespace=&pod=.*--noproxy/
    ],
    'the uid of none of the pods that share their host': [
      { address: HOST, uid: 'uid-c' },
      'not-named',
      /is the address of a host/
    ],
    'a name that Kubernetes does not know': [
      { address: STRANGER, named: named('nobody') },
      'unknown-pod',
      /Kubernetes knows no pod shop\/nobody/
    ],
    'the name of a pod in another namespace': [
      { address: STRANGER, named: named('web-1', 'bank') },
      'unknown-pod',
      /knows no pod bank\/web-1/
    ],
    'the uid of a pod that is gone': [{ uid: 'uid-before' }, 'forbidden', /has another uid now/]
  }
  for (const [what, [caller, error, why]] of Object.entries(refused)) {
    it(`refuses ${what}`, async () => {
      const identity = await ask(caller)
      if (identity.ok) throw new Error(`took ${identity.pod.name}`)
      expect(identity.error).to.equal(error)
      expect(identity.why).to.match(why)
    })
  }

  it('never identifies a host-network pod by its address, even a lone one: other packets come from there too', async () => {
    const alone = pod('a', { ips: [HOST], hostNetwork: true })
    const unseen = manualHolds()
    unseen.behind.push(alone)
    for (const pods of [manualHolds(alone), unseen]) {
      const identity = await ask({ address: HOST }, { pods })
      expect(identity.ok ? '' : identity.error).to.equal('not-named')
      const byName = await ask({ address: HOST, named: named('a') }, { pods })
      expect(byName.ok && byName.pod.name).to.equal('a')
    }
  })

  it('does not confuse an ended pod with the one that has its address now', async () => {
    const before = pod('web-0', { ips: ['10.0.0.7'], phase: 'Failed', uid: 'uid-before' as PodUid })
    const identity = await ask({}, { pods: manualHolds(before, web) })
    expect(identity.ok && identity.pod.name).to.equal('web-1')
  })

  it('asks for a name while two pods have the address', async () => {
    const next = pod('web-9', { ips: ['10.0.0.7'] })
    const pods = manualHolds(web, next)
    const unclear = await ask({}, { pods })
    expect(unclear.ok ? '' : unclear.error).to.equal('not-named')
    const clear = await ask({ named: named('web-9') }, { pods })
    expect(clear.ok && clear.pod.name).to.equal('web-9')
  })

  it('reports that Kubernetes cannot be reached, and passes on an abort', async () => {
    const pods = holds()
    pods.askError = new Error('no connection')
    const caller = { address: STRANGER, named: named('x') }
    const identity = await ask(caller, { pods })
    expect(identity.ok ? '' : identity.error).to.equal('cannot-ask-kubernetes')
    let thrown: unknown
    await ask(caller, { pods, signal: AbortSignal.abort() }).catch((err: unknown) => (thrown = err))
    expect(thrown).to.equal(pods.askError)
  })
})
