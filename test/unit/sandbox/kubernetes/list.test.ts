import { expect } from 'chai'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { text, connectTo, names, podDraft, type Client } from './client.ts'

const PODS = '/api/v1/namespaces/default/pods'

describe('sandbox/kubernetes list and get', () => {
  let kubernetes: Kubernetes
  let client: Client
  before(async () => {
    kubernetes = await startKubernetes({ waitMs: 30 })
    client = connectTo(kubernetes)
    for (let i = 0; i < 5; i += 1) kubernetes.store.create('pods', podDraft(`p${i}`, { odd: `${i % 2}` }))
    kubernetes.store.create('namespaces', { metadata: { name: 'shop' } })
    kubernetes.store.create('pods', podDraft('q', {}, 'shop'))
  })
  after(async () => {
    client.close()
    await kubernetes.close()
  })
  const at = () => `${kubernetes.store.version()}`

  it('lists one namespace and all of them, with the current version', async () => {
    const { body } = await client.ask('GET', PODS)
    expect(names(body)).to.deep.equal(['p0', 'p1', 'p2', 'p3', 'p4'])
    expect(body).to.deep.include({ kind: 'PodList', apiVersion: 'v1' })
    expect(body.metadata).to.deep.equal({ resourceVersion: at() })
    expect((await client.ask('GET', '/api/v1/pods')).body.items).to.have.length(6)
  })
  it('selects by labels and fields', async () => {
    const query = 'labelSelector=odd%20in%20(1)&fieldSelector=metadata.name!%3Dp1'
    expect(names((await client.ask('GET', `${PODS}?${query}`)).body)).to.deep.equal(['p3'])
    expect((await client.ask('GET', `${PODS}?fieldSelector=spec.foo%3Dx`)).status).to.equal(400)
    expect((await client.ask('GET', `${PODS}?labelSelector=)(`)).status).to.equal(400)
  })
  it('pages through one consistent moment, whatever happens between two pages', async () => {
    const first = await client.ask('GET', `${PODS}?limit=2`)
    expect(names(first.body)).to.deep.equal(['p0', 'p1'])
    expect(first.body.metadata!.remainingItemCount).to.equal(3)
    kubernetes.store.delete('pods', 'default', 'p2', { gracePeriodSeconds: 0 })
    kubernetes.store.create('pods', podDraft('p3a'))
    const second = await client.ask('GET', `${PODS}?limit=2&continue=${text(first.body.metadata!.continue)}`)
    expect(names(second.body)).to.deep.equal(['p2', 'p3'])
    expect(second.body.metadata!.resourceVersion).to.equal(first.body.metadata!.resourceVersion)
    const third = await client.ask('GET', `${PODS}?limit=2&continue=${text(second.body.metadata!.continue)}`)
    expect(names(third.body)).to.deep.equal(['p4'])
    expect(third.body.metadata).not.to.have.any.keys('continue', 'remainingItemCount')
    expect(names((await client.ask('GET', PODS)).body)).to.deep.equal(['p0', 'p1', 'p3', 'p3a', 'p4'])
  })
  it('does not count the remaining items if there is a selector', async () => {
    const { metadata } = (await client.ask('GET', `${PODS}?limit=1&labelSelector=odd`)).body
    expect(metadata).to.have.keys('resourceVersion', 'continue')
  })
  it('expires a page token with 410, and offers an inconsistent continuation', async () => {
    const first = await client.ask('GET', `${PODS}?limit=2`)
    kubernetes.faults.expireHistory()
    const late = await client.ask('GET', `${PODS}?limit=2&continue=${text(first.body.metadata!.continue)}`)
    expect(late.status).to.equal(410)
    expect(late.body.reason).to.equal('Expired')
    const on = await client.ask('GET', `${PODS}?continue=${text(late.body.metadata!.continue)}`)
    expect(names(on.body)).to.deep.equal(['p3', 'p3a', 'p4'])
    expect((await client.ask('GET', `${PODS}?continue=nonsense`)).status).to.equal(400)
  })
  it('answers resourceVersion=0 in one page, whatever the limit', async () => {
    expect((await client.ask('GET', `${PODS}?limit=1&resourceVersion=0`)).body.items).to.have.length(5)
  })
  it('goes back to an exact version inside the history, 410 beyond it', async () => {
    const before = at()
    kubernetes.store.create('pods', podDraft('p9'))
    const exact = `${PODS}?resourceVersion=${before}&resourceVersionMatch=Exact`
    expect(names((await client.ask('GET', exact)).body)).not.to.include('p9')
    expect(names((await client.ask('GET', exact.replace('Exact', 'NotOlderThan'))).body)).to.include('p9')
    kubernetes.faults.expireHistory()
    expect((await client.ask('GET', exact)).status).to.equal(410)
  })
  it('waits for a future version, and answers 504 if it does not come', async () => {
    const ahead = `${PODS}?resourceVersion=${kubernetes.store.version() + 1}&resourceVersionMatch=NotOlderThan`
    const waited = client.ask('GET', ahead)
    kubernetes.store.create('pods', podDraft('p8'))
    expect((await waited).status).to.equal(200)
    const late = await client.ask('GET', `${PODS}?resourceVersion=999999`)
    expect(late.status).to.equal(504)
    expect(late.body.message).to.contain('Too large resource version')
  })
  for (const query of [
    'resourceVersionMatch=Exact',
    'resourceVersion=0&resourceVersionMatch=Exact',
    'resourceVersion=5&resourceVersionMatch=Any'
  ])
    it(`refuses ${query}`, async () => {
      expect((await client.ask('GET', `${PODS}?${query}`)).status).to.equal(422)
    })
  it('refuses a version that is no number', async () => {
    expect((await client.ask('GET', `${PODS}?resourceVersion=abc`)).status).to.equal(400)
  })
  it('answers metadata only on request, and 406 if the client accepts only protobuf', async () => {
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
    const { body } = await client.ask('GET', `${PODS}?limit=1`, undefined, { accept })
    expect(body.kind).to.equal('PartialObjectMetadataList')
    expect((body.items as unknown as object[])[0]).to.have.keys('kind', 'apiVersion', 'metadata')
    const one = await client.ask('GET', `${PODS}/p0`, undefined, {
      accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
    })
    expect(one.body).to.have.keys('kind', 'apiVersion', 'metadata')
    const binary = { accept: 'application/vnd.kubernetes.protobuf' }
    expect((await client.ask('GET', PODS, undefined, binary)).status).to.equal(406)
    expect((await client.ask('GET', PODS, undefined, { accept: `${binary.accept}, */*` })).status).to.equal(
      200
    )
  })
  it('gets one object, and 404 with a Status', async () => {
    expect((await client.ask('GET', `${PODS}/p0`)).body).to.deep.include({ kind: 'Pod', apiVersion: 'v1' })
    const missing = await client.ask('GET', `${PODS}/nobody`)
    expect(missing.status).to.equal(404)
    expect(missing.body).to.deep.include({
      kind: 'Status',
      reason: 'NotFound',
      message: 'pods "nobody" not found'
    })
    expect((await client.ask('GET', '/apis/nobody.io/v1/things')).status).to.equal(404)
    expect((await client.ask('GET', '/apis/apps/v1/pods')).status).to.equal(404)
  })
  it('requires the token', async () => {
    const stranger = connectTo(kubernetes, 'wrong')
    expect((await stranger.ask('GET', PODS)).status).to.equal(401)
    expect((await stranger.ask('GET', '/readyz')).status).to.equal(200)
    stranger.close()
  })
  it('describes itself', async () => {
    expect((await client.ask('GET', '/version')).body).to.include({ major: '1', minor: '36' })
    expect((await client.ask('GET', '/api')).body.versions).to.deep.equal(['v1'])
    const groups = (await client.ask('GET', '/apis')).body.groups as unknown as { name: string }[]
    expect(groups.map(({ name }) => name)).to.include.members([
      'apps',
      'discovery.k8s.io',
      'coordination.k8s.io'
    ])
    const apps = (await client.ask('GET', '/apis/apps/v1')).body.resources as unknown as { name: string }[]
    expect(apps.map(({ name }) => name)).to.include.members([
      'deployments',
      'deployments/status',
      'deployments/scale'
    ])
    for (const path of ['/healthz', '/livez']) expect((await client.ask('GET', path)).status).to.equal(200)
    expect((await client.ask('GET', '/apis/apps')).body.kind).to.equal('APIGroup')
  })
})
