import { expect } from 'chai'
import type { Ack } from '../../../../agent/rules/drain/drain.ts'
import { createAfterAck } from '../../../../agent/report/show/gauges.ts'
import { createMetrics } from '../../../../agent/report/metrics/metrics.ts'
import { pod } from '../../../build/pod.ts'
import { waitingDrain } from '../../../build/snapshot.ts'

describe('requests after the ack', () => {
  const metrics = createMetrics()
  const web = pod('web-1')
  const drain = { ...waitingDrain(), uid: web.uid }
  const ack = (evidence: Ack['evidence']) => ({ evidence }) as Ack
  const total = async () =>
    (await metrics.afterAck.get()).values.find(({ labels }) => labels.gateway === 'apisix-1')?.value ?? 0

  function rig() {
    const late = { reading: 0, status: 0 }
    const afterAck = createAfterAck(
      {
        cluster: { gateways: () => [{ id: 'g', name: 'apisix-1' }] },
        barrier: {
          reading: () => ({ late: late.reading }),
          state: () => ({ status: { entries: [{ uid: web.uid, late: late.status }] } })
        }
      } as never,
      metrics
    )
    return { late, afterAck }
  }

  it('counts each request once, and none that the drain waited for', async () => {
    const before = await total()
    const { late, afterAck } = rig()
    late.reading = late.status = 2
    afterAck.observer.ack?.(ack('barrier'), drain, undefined as never, undefined as never)
    afterAck.observer.round?.(1)
    expect(afterAck.of(web.uid)).to.equal(0)
    late.status = 5
    afterAck.observer.round?.(1)
    afterAck.observer.round?.(1)
    expect(afterAck.of(web.uid)).to.equal(3)
    expect((await total()) - before).to.equal(3)
  })

  it('reports nothing if the ack rests on other evidence, or has not been given', async () => {
    const before = await total()
    const { late, afterAck } = rig()
    afterAck.observer.ack?.(ack('observed'), drain, undefined as never, undefined as never)
    late.status = 4
    afterAck.observer.round?.(1)
    expect(afterAck.of(web.uid)).to.equal(undefined)
    expect((await total()) - before).to.equal(0)
  })
})
