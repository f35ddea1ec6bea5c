import { expect } from 'chai'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import { createMetrics } from '../../../../agent/report/metrics/metrics.ts'
import { conditionOf, createConditions } from '../../../../agent/report/tell/conditions.ts'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'
import { waitingDrain } from '../../../build/snapshot.ts'
import { patchOf } from '../../../../agent/report/tell/pod-condition.ts'

const begun = waitingDrain()
const undone: Drain = { ...begun, phase: 'undone', at: 2, why: 'the container is back' }
const memory = undefined as never
const turns = async () => {
  for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve))
}

describe('condition of a pod', () => {
  let kubernetes: Kubernetes
  const metrics = createMetrics()
  before(async () => {
    kubernetes = await startKubernetes({ tls: false })
  })
  after(() => kubernetes.close())

  it('is merged into the existing conditions, as the API server merges', async () => {
    const { store } = kubernetes
    const { metadata } = store.create('pods', {
      metadata: { name: 'web-1', namespace: 'default' },
      spec: { containers: [{ name: 'app' }] }
    })
    store.patchStatus('pods', 'default', 'web-1', { conditions: [{ type: 'Ready', status: 'True' }] })
    const drain = { ...undone, uid: metadata.uid as Drain['uid'] }
    const response = await fetch(`${kubernetes.url}/api/v1/namespaces/default/pods/web-1/status`, {
      method: 'PATCH',
      headers: {
        authorization: `Bearer ${kubernetes.token}`,
        'content-type': 'application/strategic-merge-patch+json'
      },
      body: JSON.stringify(patchOf(drain.uid, conditionOf(drain), 1_000_000))
    })
    expect(response.status).to.equal(200)
    const { conditions } = store.get('pods', 'default', 'web-1')!.status as {
      conditions: { type: string; status: string; reason?: string }[]
    }
    const told = conditions.map(({ type, status, reason }) => [type, status, reason])
    expect(told).to.deep.include(['Ready', 'True', undefined])
    expect(told).to.deep.include(['apisix-drain.io/drained', 'False', 'DrainUndone'])
  })

  it('is written once per drain, by the leader, to the drained pod', async () => {
    const clock = manualClock()
    const written: string[] = []
    let leads = true
    const conditions = createConditions({
      patch: async path => {
        written.push(path)
        return { status: 200 }
      },
      leader: { leads: () => leads },
      clock,
      log: memoryLog().log,
      metrics
    })
    conditions.observer.drain?.(undefined, begun, memory)
    conditions.observer.drain?.(begun, undone, memory)
    conditions.observer.drain?.(undone, undefined, memory)
    await turns()
    expect(written).to.deep.equal([`/api/v1/namespaces/${begun.pod.namespace}/pods/${begun.pod.name}/status`])
    leads = false
    conditions.observer.drain?.(begun, undone, memory)
    await turns()
    expect(written).to.have.length(1)
    const stopping = conditions.stop()
    clock.advance(100)
    await stopping
  })
})
