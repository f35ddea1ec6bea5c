import { expect } from 'chai'
import type { Pod } from '../../sandbox/kubernetes/objects.ts'
import { until } from '../build/apisix.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const GATE = 'apisix-drain.io/in-upstream'
const WITHIN_MS = 20_000

const conditionOf = (pod: Pod | undefined, type: string) =>
  pod?.status.conditions?.find(condition => condition.type === type)

/** Makes a pod whose containers are ready and whose gate is closed. */
const gated = (rig: Rig, name: string): TestPod => rig.pod(name, { ready: false, gates: [GATE] })

/** Acts as the kubelet: a pod is Ready once its containers are ready and its gate is open. Calls `opened` for each open gate. */
function playKubelet(rig: Rig, opened: (pod: Pod) => void = () => {}): () => void {
  return rig.kubernetes.store.onChange('pods', ({ object }) => {
    if (conditionOf(object, GATE)?.status !== 'True' || conditionOf(object, 'Ready')?.status === 'True')
      return
    const { namespace = '', name } = object.metadata
    opened(object)
    rig.kubernetes.store.patchStatus('pods', namespace, name, {
      conditions: [{ type: 'Ready', status: 'True' }]
    })
  })
}

const isOpen = (rig: Rig, pod: TestPod) =>
  until(`the gate of ${pod.name} is open`, () => conditionOf(rig.object(pod), GATE) !== undefined, WITHIN_MS)

function follow(rig: Rig, name: string, annotations: Readonly<Record<string, string>>): void {
  rig.kubernetes.store.modify('services', 'shop', name, service => ({
    ...service,
    metadata: { ...service.metadata, annotations }
  }))
}

describe('feature: the readiness gate in-upstream', () => {
  const test = sideBySide({ config: { ARRIVALS_GATE: 'true', SYNC_ENABLED: 'true', SYNC_ALLOW: 'shop/*' } })

  test('holds a rolling update until every worker of every gateway routes to the new pods', async start => {
    // The workers are late, so a gate that opens at the write would open too early.
    const rig = await start({ barrier: true, gateways: 2, applyDelay: () => 400 + Math.random() * 400 })
    const early: string[] = []
    const unplay = playKubelet(rig, ({ metadata, status }) => {
      const node = `${status.podIP}:28080`
      for (const gateway of rig.gateways)
        for (const { config } of gateway.workers) {
          const nodes = JSON.stringify(config.get('upstreams', 'web') ?? {})
          if (!nodes.includes(node)) early.push(`${metadata.name}: ${gateway.name}`)
        }
    })
    let live = [rig.pod('old-1'), rig.pod('old-2')]
    for (const pod of live) await rig.serve(pod)
    rig.service('web', live)
    rig.upstream('web', live)
    follow(rig, 'web', { 'apisix-drain.io/upstream': 'web' })
    await rig.settled()
    const load = rig.load(50)
    for (const old of live) {
      const fresh = gated(rig, old.name.replace('old', 'new'))
      await rig.serve(fresh)
      rig.service('web', [...live, fresh])
      await isOpen(rig, fresh)
      expect(conditionOf(rig.object(fresh), GATE)).to.include({ status: 'True', reason: 'Routed' })
      // The slice is late: it still reports the new pod as not ready, and the old node stays.
      rig.end(old)
      const { body } = await rig.hook(old)
      expect(body).to.include({ result: 'drained', evidence: 'barrier' })
      expect(rig.nodes('upstreams/web')).to.include(fresh.node)
      live = [...live.filter(pod => pod !== old), fresh]
      rig.service('web', live)
      rig.gone(old)
    }
    const { failures } = await load.stop()
    unplay()
    expect(failures).to.deep.equal([])
    expect(early, 'gates that were opened before a worker knew the pod').to.deep.equal([])
    // The hooks needed only the barrier. The write may come later, because it waits for an answer of Kubernetes.
    const wanted = live.map(({ node }) => node).toSorted()
    await until(
      'just the new pods are listed',
      () => rig.nodes('upstreams/web').toSorted().join() === wanted.join(),
      WITHIN_MS
    )
  })

  test('opens at once, with a warning, if no owner lists the pod before it is Ready', async start => {
    const rig = await start()
    const [old, fresh] = [rig.pod('web-1'), gated(rig, 'web-2')]
    rig.kubernetes.store.create('namespaces', { metadata: { name: 'shop' } })
    rig.upstream('web', [old])
    rig.service('web', [old, fresh])
    await isOpen(rig, fresh)
    expect(conditionOf(rig.object(fresh), GATE)).to.include({ status: 'True', reason: 'NotListed' })
    expect(
      conditionOf(rig.object(fresh), 'ContainersReady')?.status,
      'the others are left as they are'
    ).to.equal('True')
    await until(
      'the pod is told',
      () =>
        rig.kubernetes.store
          .list('events')
          .some(event => (event as unknown as { reason: string }).reason === 'GateOpened'),
      WITHIN_MS
    )
    expect(rig.agent.lines.filter(({ msg }) => msg === 'readiness gate opened without proof')).to.have.length(
      1
    )
  })

  test('opens when the pod has waited long enough, whatever is broken', async start => {
    const rig = await start({ barrier: true, config: { ARRIVALS_FAIL_OPEN: '3s' } })
    const [old, fresh] = [rig.pod('web-1'), gated(rig, 'web-2')]
    rig.service('web', [old])
    follow(rig, 'web', { 'apisix-drain.io/upstream': 'web', 'apisix-drain.io/create': 'true' })
    await until('the Service is followed', () => rig.nodes('upstreams/web').includes(old.node), WITHIN_MS)
    await rig.settled()
    for (const { workers } of rig.gateways) for (const worker of workers) worker.loseWatch()
    rig.service('web', [old, fresh])
    await until('it is listed', () => rig.nodes('upstreams/web').includes(fresh.node), WITHIN_MS)
    await isOpen(rig, fresh)
    expect(conditionOf(rig.object(fresh), GATE)).to.include({ status: 'True', reason: 'WaitedTooLong' })
  })

  test('stays shut if it is disabled, and for a pod whose containers are not ready', async start => {
    const off = await start({ config: { ARRIVALS_GATE: 'false' } })
    const on = await start()
    const waiting = gated(off, 'web-1')
    const starting = gated(on, 'web-1')
    on.condition(starting, 'ContainersReady', 'False')
    for (const [rig, pod] of [
      [off, waiting],
      [on, starting]
    ] as const) {
      rig.service('web', [pod])
      await rig.settled()
      const readAt = rig.agent.readAt() ?? 0
      await until('the agent has looked again', () => (rig.agent.readAt() ?? 0) > readAt, WITHIN_MS)
      expect(conditionOf(rig.object(pod), GATE)).to.equal(undefined)
    }
  })
})
