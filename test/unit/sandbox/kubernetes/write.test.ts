import { expect } from 'chai'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { connectTo, podDraft, type Client } from './client.ts'

const NS = '/api/v1/namespaces/default'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const MERGE = { 'content-type': 'application/merge-patch+json' }
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' }

describe('sandbox/kubernetes writes', () => {
  let kubernetes: Kubernetes
  let client: Client
  beforeEach(async () => {
    kubernetes = await startKubernetes()
    client = connectTo(kubernetes)
  })
  afterEach(async () => {
    client.close()
    await kubernetes.close()
  })

  it('creates: 201, without the client’s status; 409 the second time; 404 in a missing namespace', async () => {
    const draft = { ...podDraft('a'), status: { phase: 'Running' } }
    const created = await client.ask('POST', `${NS}/pods`, draft)
    expect(created.status).to.equal(201)
    expect(created.body.status).to.deep.equal({ phase: 'Pending' })
    expect((await client.ask('POST', `${NS}/pods`, draft)).body.reason).to.equal('AlreadyExists')
    const elsewhere = { ...draft, metadata: { name: 'a' } }
    expect((await client.ask('POST', '/api/v1/namespaces/nowhere/pods', elsewhere)).status).to.equal(404)
    expect((await client.ask('POST', '/api/v1/namespaces/kube-system/pods', draft)).status).to.equal(400)
    expect((await client.ask('POST', `${NS}/pods`, { ...draft, kind: 'Service' })).status).to.equal(400)
    expect((await client.ask('POST', `${NS}/pods?dryRun=All`, podDraft('b'))).status).to.equal(201)
    expect(kubernetes.store.get('pods', 'default', 'b')).to.equal(undefined)
  })
  it('refuses a body that is not JSON', async () => {
    const type = { 'content-type': 'application/vnd.kubernetes.protobuf' }
    expect((await client.ask('POST', `${NS}/pods`, {}, type)).status).to.equal(415)
    expect((await client.ask('POST', `${NS}/pods`, 'text')).status).to.equal(400)
    expect(
      (await client.ask('PATCH', `${NS}/pods/a`, {}, { 'content-type': 'application/apply-patch+yaml' }))
        .status
    ).to.equal(415)
  })
  it('holds a Lease by optimistic concurrency', async () => {
    const lease = (
      await client.ask('POST', LEASES, { metadata: { name: 'l' }, spec: { holderIdentity: 'a' } })
    ).body
    const mine = await client.ask('PUT', `${LEASES}/l`, { ...lease, spec: { holderIdentity: 'b' } })
    expect(mine.status).to.equal(200)
    const late = await client.ask('PUT', `${LEASES}/l`, { ...lease, spec: { holderIdentity: 'c' } })
    expect(late.status).to.equal(409)
    expect(late.body.reason).to.equal('Conflict')
    expect((await client.ask('PUT', `${LEASES}/l`, { metadata: { name: 'l' }, spec: {} })).status).to.equal(
      422
    )
    expect(kubernetes.store.get('leases', 'default', 'l')?.spec?.holderIdentity).to.equal('b')
  })
  it('patches in both ways, the status apart', async () => {
    kubernetes.store.create('pods', podDraft('a', { app: 'web' }))
    const pod = `${NS}/pods/a`
    const merged = await client.ask(
      'PATCH',
      pod,
      { metadata: { annotations: { x: '1' } }, status: { phase: 'Failed' } },
      MERGE
    )
    expect(merged.body.metadata!.annotations).to.deep.equal({ x: '1' })
    expect(merged.body.status!.phase).to.equal('Pending')
    const conditions = [{ type: 'Ready', status: 'True' }]
    const status = await client.ask('PATCH', `${pod}/status`, { status: { conditions } }, STRATEGIC)
    expect(status.body.status).to.deep.equal({ phase: 'Pending', conditions })
    expect((await client.ask('PATCH', pod, { metadata: { resourceVersion: '1' } }, MERGE)).status).to.equal(
      409
    )
    const another = await client.ask('PATCH', pod, { metadata: { uid: 'x' } }, MERGE)
    expect(another.status, 'as kube-apiserver 1.36 answers').to.equal(422)
    expect(JSON.stringify(another.body)).to.include('metadata.uid: Invalid value')
    expect((await client.ask('PATCH', `${NS}/pods/b`, {}, MERGE)).status).to.equal(404)
  })
  it('deletes with grace from query or body, and by uid', async () => {
    const { metadata } = kubernetes.store.create('pods', podDraft('a'))
    const wrong = await client.ask('DELETE', `${NS}/pods/a`, { preconditions: { uid: 'x' } })
    expect(wrong.status).to.equal(409)
    const begun = await client.ask('DELETE', `${NS}/pods/a?gracePeriodSeconds=20`)
    expect(begun.body.metadata!.deletionGracePeriodSeconds).to.equal(20)
    const shorter = await client.ask('DELETE', `${NS}/pods/a`, { gracePeriodSeconds: 5 })
    expect(shorter.body.metadata!.deletionGracePeriodSeconds).to.equal(5)
    await client.ask('DELETE', `${NS}/pods/a`, {
      gracePeriodSeconds: 0,
      preconditions: { uid: metadata.uid }
    })
    expect((await client.ask('DELETE', `${NS}/pods/a`)).status).to.equal(404)
  })
  it('deletes a collection by selector', async () => {
    for (const name of ['a', 'b', 'c'])
      kubernetes.store.create('pods', podDraft(name, { keep: `${name === 'b'}` }))
    expect(
      (await client.ask('DELETE', `${NS}/pods?labelSelector=keep%3Dfalse&gracePeriodSeconds=0`)).status
    ).to.equal(200)
    expect(kubernetes.store.list('pods').map(pod => pod.metadata.name)).to.deep.equal(['b'])
  })
  it('evicts: the condition first, then the grace', async () => {
    kubernetes.store.create('pods', podDraft('a'))
    const evicted = await client.ask('POST', `${NS}/pods/a/eviction`, {
      kind: 'Eviction',
      metadata: { name: 'a' }
    })
    expect(evicted.status).to.equal(201)
    const pod = kubernetes.store.get('pods', 'default', 'a')
    expect(pod?.metadata.deletionTimestamp).to.be.a('string')
    expect(pod?.status.conditions?.[0]).to.include({ type: 'DisruptionTarget', status: 'True' })
  })
  it('scales', async () => {
    const path = '/apis/apps/v1/namespaces/default/deployments'
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [] } }
    const spec = { selector: { matchLabels: { a: 'b' } }, template }
    await client.ask('POST', path, { metadata: { name: 'web' }, spec })
    const scale = await client.ask('PATCH', `${path}/web/scale`, { spec: { replicas: 4 } }, MERGE)
    expect(scale.body).to.deep.include({ kind: 'Scale', spec: { replicas: 4 } })
    expect(kubernetes.store.get('deployments', 'default', 'web')?.spec.replicas).to.equal(4)
    const stale = { metadata: { resourceVersion: '1' }, spec: { replicas: 5 } }
    expect((await client.ask('PUT', `${path}/web/scale`, stale)).status).to.equal(409)
    expect((await client.ask('GET', `${path}/web/scale`)).body.status!.selector).to.equal('a=b')
  })

  describe('rights', () => {
    it('answers SelfSubjectAccessReview, and 403, as denied', async () => {
      const review = async (verb: string) => {
        const body = { spec: { resourceAttributes: { verb, resource: 'pods' } } }
        return (await client.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', body)).body
          .status!.allowed
      }
      const undo = kubernetes.faults.deny({ verb: 'list', resource: 'pods' })
      expect([await review('list'), await review('watch')]).to.deep.equal([false, true])
      expect((await client.ask('GET', `${NS}/pods`)).status).to.equal(403)
      undo()
      expect(await review('list')).to.equal(true)
      expect((await client.ask('GET', `${NS}/pods`)).status).to.equal(200)
    })
  })
})
