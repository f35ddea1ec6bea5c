import { expect } from 'chai'
import type { ControllerOptions } from '../../../../../sandbox/kubernetes/controllers/start.ts'
import type { Deployment } from '../../../../../sandbox/kubernetes/objects.ts'
import type { Store } from '../../../../../sandbox/kubernetes/store.ts'
import { until } from '../client.ts'
import { cluster, deployment } from './workload.ts'
import { ranMs } from '../../../../build/apisix.ts'

describe('sandbox/kubernetes controllers', () => {
  let store: Store
  let stop: () => void
  const start = (options?: ControllerOptions) => {
    const started = cluster(options)
    store = started.store
    stop = () => started.stop()
  }
  afterEach(() => stop())
  const web = () => store.get('deployments', 'default', 'web')!
  const available = (n: number) =>
    until(() => web().status.availableReplicas === n && web().status.replicas === n, `${n} available`)
  const images = () => store.list('pods').map(pod => pod.spec.containers[0]!.image)
  const change = (spec: Partial<Deployment['spec']>) =>
    store.modify('deployments', 'default', 'web', now => ({ ...now, spec: { ...now.spec, ...spec } }))
  const template = (version: number) => ({ template: deployment('web', {}, version).spec.template })

  it('starts the pods of a Deployment within milliseconds, each with a host and its owners', async () => {
    start()
    const began = performance.now()
    store.create('deployments', deployment('web'))
    await available(3)
    expect(ranMs(began)).to.be.lessThan(500)
    const [pod] = store.list('pods')
    const [set] = store.list('replicasets')
    expect(pod!.spec.nodeName).to.equal('host-1')
    expect(pod!.metadata.ownerReferences?.[0]).to.include({
      kind: 'ReplicaSet',
      uid: set!.metadata.uid,
      controller: true
    })
    expect(set!.metadata.ownerReferences?.[0]).to.include({ kind: 'Deployment', uid: web().metadata.uid })
    expect(web().status.conditions?.map(({ type, status }) => `${type} ${status}`)).to.deep.equal([
      'Available True',
      'Progressing True'
    ])
    expect(web().status.observedGeneration).to.equal(web().metadata.generation)
  })
  it('rolls a new template out, counts revisions, and rolls back onto the old set', async () => {
    start()
    store.create('deployments', deployment('web'))
    await available(3)
    change(template(2))
    await until(() => images().every(image => image === 'app:2') && images().length === 3, 'version 2')
    await available(3)
    expect(web().metadata.annotations?.['deployment.kubernetes.io/revision']).to.equal('2')
    change(template(1))
    await until(() => images().every(image => image === 'app:1') && images().length === 3, 'version 1')
    await available(3)
    expect(store.list('replicasets')).to.have.length(2)
    expect(web().metadata.annotations?.['deployment.kubernetes.io/revision']).to.equal('3')
  })
  it('Recreate ends all pods before it starts any', async () => {
    start()
    store.create('deployments', deployment('web', { strategy: { type: 'Recreate' } }))
    await available(3)
    let mixed = false
    store.onChange('pods', () => {
      mixed ||= new Set(images()).size > 1
    })
    change(template(2))
    await until(() => images().length === 3 && images().every(image => image === 'app:2'), 'version 2')
    expect(mixed).to.equal(false)
  })
  it('scales both ways, and replaces a lost pod', async () => {
    start()
    store.create('deployments', deployment('web'))
    await available(3)
    change({ replicas: 5 })
    await available(5)
    change({ replicas: 1 })
    await available(1)
    const [pod] = store.list('pods')
    store.delete('pods', 'default', pod!.metadata.name)
    await until(
      () => store.list('pods').some(({ metadata }) => metadata.uid !== pod!.metadata.uid),
      'a new pod'
    )
    await available(1)
  })
  it('deletes the contents of a deleted Deployment or namespace', async () => {
    start()
    store.create('deployments', deployment('web'))
    await available(3)
    store.delete('deployments', 'default', 'web')
    await until(() => store.list('pods').length === 0 && store.list('replicasets').length === 0, 'all gone')
    store.create('namespaces', { metadata: { name: 'shop' } })
    store.create('configmaps', { metadata: { name: 'c', namespace: 'shop' } })
    store.delete('namespaces', undefined, 'shop')
    await until(() => store.list('configmaps').length === 0, 'contents gone')
  })

  describe('endpoint slices', () => {
    const service = (spec: object = {}) =>
      store.create('services', {
        metadata: { name: 'web', namespace: 'default' },
        spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 'http' }], ...spec }
      })
    const endpoints = () => store.list('endpointslices').flatMap(slice => slice.endpoints)

    it('follow the pods of a Service, each an endpoint until its object is gone', async () => {
      start()
      service()
      await until(() => store.list('endpointslices').length === 1, 'the placeholder')
      expect(store.list('endpointslices')[0]).to.deep.include({ endpoints: [], ports: [] })
      store.create('deployments', deployment('web'))
      await until(() => endpoints().length === 3, 'three endpoints')
      expect(store.list('endpointslices', { labels: 'kubernetes.io/service-name=web' })).to.have.length(1)
      expect(store.list('endpointslices')[0]!.ports).to.deep.equal([
        { name: 'http', port: 8080, protocol: 'TCP' }
      ])
      const seen = new Set<string>()
      store.onChange('endpointslices', ({ object }) => {
        for (const { conditions } of object.endpoints) seen.add(JSON.stringify(conditions))
      })
      change({ replicas: 2 })
      await until(() => endpoints().length === 2, 'two endpoints')
      expect([...seen]).to.include(JSON.stringify({ ready: false, serving: true, terminating: true }))
    })
    it('come in both address families on request', async () => {
      start()
      service({ ipFamilies: ['IPv4', 'IPv6'] })
      store.create('deployments', deployment('web', { replicas: 1 }))
      await until(() => endpoints().length === 2, 'two families')
      const types = store
        .list('endpointslices')
        .map(slice => `${slice.addressType} ${slice.endpoints[0]!.addresses[0]}`)
      expect(types.toSorted()).to.deep.equal(['IPv4 10.0.0.1', 'IPv6 fd00::1'])
    })
    it('are split at the limit, and deleted with their Service', async () => {
      start({ endpointSlices: { perSlice: 4 } })
      service()
      store.create('deployments', deployment('web', { replicas: 10 }))
      await until(() => endpoints().length === 10, 'ten endpoints')
      for (const slice of store.list('endpointslices')) expect(slice.endpoints.length).to.be.within(1, 4)
      store.delete('services', 'default', 'web')
      await until(() => store.list('endpointslices').length === 0, 'no slices')
    })
    it('lag as configured, and gather changes meanwhile into one write', async () => {
      start({ endpointSlices: { lagMs: 1000 } })
      const began = performance.now()
      service()
      store.create('deployments', deployment('web'))
      await available(3)
      expect(endpoints()).to.have.length(0)
      const writes: number[] = []
      store.onChange('endpointslices', ({ object }) => writes.push(object.endpoints.length))
      await until(() => endpoints().length === 3, 'three endpoints')
      expect(performance.now() - began).to.be.at.least(998)
      expect(writes).to.deep.equal([3])
    })
    it("come at the controller's rate", async () => {
      start({ endpointSlices: { rate: { qps: 50, burst: 3 } } })
      const writes: number[] = []
      store.onChange('endpointslices', () => writes.push(performance.now()))
      for (let i = 0; i < 8; i += 1)
        store.create('services', {
          metadata: { name: `s${i}`, namespace: 'default' },
          spec: { selector: { app: `s${i}` } }
        })
      await until(() => writes.length === 8, 'all of them')
      // A write within the burst does not wait. Each wait would take 20 ms.
      expect(ranMs(writes[0]!, writes[2])).to.be.below(18)
      // These five writes come after the burst, at 50 a second.
      expect(writes[7]! - writes[2]!).to.be.at.least(95)
    })
    it('are corrected after another writer changed them', async () => {
      start()
      service()
      store.create('deployments', deployment('web'))
      await until(() => endpoints().length === 3, 'three endpoints')
      const { metadata } = store.list('endpointslices')[0]!
      store.modify('endpointslices', 'default', metadata.name, slice => ({ ...slice, endpoints: [] }))
      await until(() => endpoints().length === 3, 'three again')
    })
  })
})
