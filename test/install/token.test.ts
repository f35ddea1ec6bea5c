import { expect } from 'chai'
import type { PodFact } from '../../agent/rules/drain/facts.ts'
import { systemClock } from '../../agent/base/clock.ts'
import { identifyByToken } from '../../agent/hook/identify-token.ts'
import { createSigningKeys, type SigningKeys } from '../../agent/hook/signing-keys.ts'
import { createConnection, type Connection } from '../../agent/kubernetes/transport/connection.ts'
import { loadCredentials } from '../../agent/kubernetes/transport/load-credentials.ts'
import { toPodFact } from '../../agent/kubernetes/facts/pod-fact.ts'
import { memoryLog } from '../build/serve.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { onEachKubernetes } from './each-kubernetes.ts'

const PODS = '/api/v1/namespaces/default/pods'
const ACCOUNT = '/api/v1/namespaces/default/serviceaccounts/default'

/** Tokens from a real API server, requested as the kubelet does, and checked with its real keys. */
onEachKubernetes('tokens of a real API server', version => {
  let api: ApiServer
  let keys: SigningKeys
  let connection: Connection

  before(async function () {
    this.timeout(180_000)
    api = await startApiServer(version)
    await api.call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
    // Every ServiceAccount may read the keys. So the test reads them with a ServiceAccount that has no rights.
    const file = api.kubeconfigFor(await tokenFor({}))
    connection = createConnection(loadCredentials({ kind: 'kubeconfig', file }, systemClock), systemClock)
    keys = createSigningKeys({
      get: (path, signal) => connection.request('GET', path, undefined, signal),
      clock: systemClock,
      log: memoryLog().log
    })
  })
  after(async () => {
    keys?.stop()
    await connection?.close()
    await api?.stop()
  })

  async function tokenFor(spec: object): Promise<string> {
    const { status, json } = await api.call('POST', `${ACCOUNT}/token`, { spec })
    expect(status, JSON.stringify(json)).to.equal(201)
    return (json as { status: { token: string } }).status.token
  }
  const boundTo = ({ name, uid }: PodFact, audience = 'apisix-drain') =>
    tokenFor({
      audiences: [audience],
      expirationSeconds: 600,
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid }
    })
  /** Creates a pod on a host. Its object stays after a deletion, because no kubelet runs here that would report its end. */
  async function create(name: string): Promise<PodFact> {
    const spec = { nodeName: 'host-1', containers: [{ name: 'web', image: 'shop/web' }] }
    const { status, json } = await api.call('POST', PODS, { metadata: { name }, spec })
    expect(status, JSON.stringify(json)).to.equal(201)
    return toPodFact(json) as PodFact
  }
  const find = async (_namespace: string, name: string) => {
    const { status, json } = await api.call('GET', `${PODS}/${name}`)
    return status === 200 ? toPodFact(json) : undefined
  }
  const identify = async (token: string, now = Date.now()) => {
    const caller = { token, named: undefined, uid: undefined }
    const identity = await identifyByToken(caller, { find }, keys.find, now, AbortSignal.timeout(30_000))
    return identity.ok ? identity.pod.uid : `${identity.error}: ${identity.why}`
  }

  it('name their pod, also while it is Terminating, and not once it is gone', async () => {
    const web = await create('web')
    const token = await boundTo(web)
    expect(token.length).to.be.below(3000)
    expect(await identify(token)).to.equal(web.uid)
    expect((await api.call('DELETE', `${PODS}/web`)).status).to.equal(200)
    expect((await find('default', 'web'))?.deletionAt).to.be.a('number')
    expect(await identify(token)).to.equal(web.uid)
    await api.call('DELETE', `${PODS}/web?gracePeriodSeconds=0`)
    expect(await identify(token)).to.match(/^unknown-pod: /)
    const next = await create('web')
    expect(await identify(token)).to.match(/^forbidden: default\/web has another uid now/)
    expect(await identify(await boundTo(next))).to.equal(next.uid)
  })

  it('are refused for another audience, after their time, and without a pod', async () => {
    const pod = await create('audience')
    expect(await identify(await boundTo(pod, 'https://kubernetes.default.svc'))).to.match(
      /^unauthorized: .*audience/
    )
    expect(await identify(await boundTo(pod), Date.now() + 700_000)).to.match(/^unauthorized: .*expired/)
    expect(await identify(await tokenFor({ audiences: ['apisix-drain'] }))).to.match(
      /^forbidden: .*bound to no pod/
    )
  })

  it('are refused by the API server itself', async () => {
    const { status } = await api.call('GET', PODS, undefined, await boundTo(await create('thief')))
    expect(status).to.equal(401)
  })
})
