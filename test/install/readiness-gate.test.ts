import { expect } from 'chai'
import { systemClock } from '../../agent/base/clock.ts'
import { openGate } from '../../agent/report/tell/readiness-gate.ts'
import { ANOTHERS, patchOf } from '../../agent/report/tell/pod-condition.ts'
import { createConnection, type Connection } from '../../agent/kubernetes/transport/connection.ts'
import { withGate } from '../../agent/kubernetes/facts/gated-pod.ts'
import { loadCredentials } from '../../agent/kubernetes/transport/load-credentials.ts'
import { toPodFact } from '../../agent/kubernetes/facts/pod-fact.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { onEachKubernetes } from './each-kubernetes.ts'

const PODS = '/api/v1/namespaces/shop/pods'

onEachKubernetes('a readiness gate on a real API server', version => {
  let api: ApiServer
  let connection: Connection
  before(async function () {
    this.timeout(120_000)
    api = await startApiServer(version)
    const source = { kind: 'kubeconfig', file: api.kubeconfig } as const
    connection = createConnection(loadCredentials(source, systemClock), systemClock)
  })
  after(async () => {
    await connection?.close()
    await api?.stop()
  })

  const read = async () => {
    const { json } = await connection.request('GET', `${PODS}/web-1`)
    return { fact: withGate(toPodFact)(json), pod: json as { status: { conditions: object[] } } }
  }
  const patch = (body: unknown) => connection.request('PATCH', `${PODS}/web-1/status`, body)

  it('is opened without changing other conditions, for the pod of this uid only', async () => {
    await connection.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    const account = { metadata: { name: 'default' } }
    await connection.request('POST', '/api/v1/namespaces/shop/serviceaccounts', account)
    const { status, json } = await connection.request('POST', PODS, {
      metadata: { name: 'web-1' },
      spec: {
        automountServiceAccountToken: false,
        readinessGates: [{ conditionType: 'apisix-drain.io/in-upstream' }],
        containers: [{ name: 'app', image: 'app' }]
      }
    })
    expect(status, JSON.stringify(json)).to.equal(201)
    const ready = { type: 'ContainersReady', status: 'True' }
    await patch({ status: { conditions: [ready, { type: 'Ready', status: 'False' }] } })
    const { fact } = await read()
    expect(fact?.gate).to.equal('waiting')
    if (!fact) return

    const namesake = await patch(patchOf('another', openGate('Routed', ''), 0))
    expect(namesake.status, JSON.stringify(namesake.json)).to.equal(422)
    expect(JSON.stringify(namesake.json)).to.include('metadata.uid')
    expect(ANOTHERS).to.include(namesake.status)
    expect((await read()).fact?.gate).to.equal('waiting')

    expect(
      (await patch(patchOf(fact.uid, openGate('Routed', 'in upstreams/web'), 1_000_000))).status
    ).to.equal(200)
    const after = await read()
    expect(after.fact?.gate).to.equal('open')
    expect(after.pod.status.conditions).to.have.length(3)
    expect(after.pod.status.conditions).to.deep.include({
      type: 'apisix-drain.io/in-upstream',
      status: 'True',
      reason: 'Routed',
      message: 'in upstreams/web',
      lastProbeTime: null,
      lastTransitionTime: '1970-01-01T00:16:40Z'
    })
  })
})
