import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { createAddresses } from '../../../../sandbox/kubelet/addresses.ts'
import type { Pod } from '../../../../sandbox/kubernetes/objects.ts'
import { alive, eventually, harness, POLITE, type Harness } from './harness.ts'

const status = (pod: Pod | undefined, type: string) =>
  pod?.status.conditions?.find(condition => condition.type === type)?.status

describe('sandbox/kubelet', () => {
  let world: Harness
  beforeEach(() => (world = harness()))
  afterEach(() => world.close())

  it('runs a pod bound to its host and reports it Ready, with its own address', async () => {
    const one = await world.pod('web-1')
    const two = await world.pod('web-2')
    const stored = world.store.get('pods', 'shop', 'web-1')
    expect(stored?.status).to.deep.include({
      phase: 'Running',
      podIP: one.record.ip,
      podIPs: [{ ip: one.record.ip }]
    })
    expect(stored?.status.containerStatuses?.[0]).to.include({ ready: true, restartCount: 0 })
    expect(one.record.ip).to.match(/^127\./)
    expect(one.record.ip).to.not.equal(two.record.ip)
  })

  it('leaves pods of other hosts alone', async () => {
    world.store.create('pods', {
      metadata: { namespace: 'shop', name: 'elsewhere' },
      spec: { nodeName: 'host-2', containers: [{ name: 'main', command: POLITE }] }
    })
    await world.pod('web-1')
    expect(world.kubelet.records().map(({ name }) => name)).to.deep.equal(['web-1'])
  })

  it('starts a pod after a delay, and never starts one that is deleted meanwhile', async () => {
    const delays = [50, 20_000]
    const slow = harness(() => delays.shift() ?? 0)
    try {
      const { record } = await slow.pod('web-1')
      expect(record.readyAt).to.not.equal(undefined)
      const pod = slow.store.create('pods', {
        metadata: { namespace: 'shop', name: 'web-2' },
        spec: { nodeName: 'host-1', containers: [{ name: 'main', command: POLITE }] }
      })
      await eventually('its set-up has begun', () => delays.length === 0)
      slow.store.delete('pods', 'shop', pod.metadata.name)
      await eventually('it is gone', () => slow.store.get('pods', 'shop', 'web-2') === undefined)
      expect(slow.kubelet.records()).to.have.length(1)
    } finally {
      await slow.close()
    }
  })

  it('restarts a container after a failed liveness probe: hook, TERM, start; no deletion, Ready throughout', async () => {
    // The hook sleeps so long that the pod's shell has set its trap before TERM comes.
    const preStop = { exec: { command: ['sh', '-c', 'sleep 0.5; echo again'] } }
    const { pod, record } = await world.pod('web-1', { preStop })
    const ready: (string | undefined)[] = []
    const unsubscribe = world.store.onChange('pods', ({ object }) => ready.push(status(object, 'Ready')))
    await world.kubelet.restart(pod.metadata.uid)
    unsubscribe()
    const stored = world.store.get('pods', 'shop', 'web-1')
    expect(record.hooks[0]).to.include({ ok: true, output: 'again\n' })
    expect(record.exits[0]).to.include({ code: 0 })
    expect(stored?.metadata.deletionTimestamp).to.equal(undefined)
    expect(stored?.status.containerStatuses?.[0]).to.include({ ready: true, restartCount: 1 })
    expect(ready).to.include('True').and.to.not.include('False')
  })

  it('restarts a crashed container, which is not Ready in between', async () => {
    const once = ['sh', '-c', 'sleep 0.2; exit 3']
    const { pod, record } = await world.pod('web-1', { command: once })
    await world.kubelet.until('it was started again', () => record.restarts >= 1, 60_000)
    expect(record.exits[0]).to.include({ code: 3 })
    expect(
      world.store.get('pods', 'shop', pod.metadata.name)?.status.containerStatuses?.[0]?.restartCount
    ).to.equal(1)
  })

  it('leaves no process behind, neither of containers nor of hooks', async () => {
    const note = join(await mkdtemp(join(tmpdir(), 'apisix-drain-')), 'pid')
    const hook = ['sh', '-c', `sleep 60 & echo $! > ${note}.new; mv ${note}.new ${note}; wait`]
    const { record } = await world.pod('web-1', { preStop: { exec: { command: hook } } })
    const pids = world.kubelet.pids()
    expect(pids).to.have.length(1)
    expect(pids.every(alive)).to.equal(true)
    world.store.delete('pods', 'shop', 'web-1')
    await eventually('the hook runs', () => existsSync(note))
    const child = Number(await readFile(note, 'utf8'))
    expect(alive(child)).to.equal(true)
    await world.kubelet.close()
    expect(pids.some(alive)).to.equal(false)
    await eventually('what the hook had started is gone', () => !alive(child))
    expect(record.hooks).to.have.length(1)
    await rm(dirname(note), { recursive: true })
  })
})

describe('sandbox/kubelet: addresses', () => {
  it('are loopback addresses, unique in this process', () => {
    const askers = [createAddresses(), createAddresses(), createAddresses()]
    const given = Array.from({ length: 900 }, (_, i) => askers[i % 3]!.allocate())
    expect(new Set(given).size).to.equal(900)
    for (const ip of given) {
      const [first, a, b, host] = ip.split('.').map(Number)
      expect(first).to.equal(127)
      expect(a).to.be.within(1, 254)
      expect(b).to.be.within(0, 255)
      expect(host).to.be.within(1, 250)
    }
  })

  it('use the given subnets in turn, and never 127.0', () => {
    let subnet = 254 * 256 - 1
    const addresses = createAddresses(() => subnet++ % (254 * 256))
    const given = Array.from({ length: 251 }, () => addresses.allocate())
    expect([given[0], given[249], given[250]]).to.deep.equal([
      '127.254.255.1',
      '127.254.255.250',
      '127.1.0.1'
    ])
  })

  it('reuses an address on request, as Kubernetes does within seconds', () => {
    const addresses = createAddresses()
    const first = addresses.allocate()
    addresses.reuse(first)
    expect(addresses.allocate()).to.equal(first)
    expect(addresses.allocate()).to.not.equal(first)
  })
})
