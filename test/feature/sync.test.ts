import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const SYNC = { SYNC_ALLOW: 'shop/*' }

/** Sets the annotations of a Service, as `kubectl annotate` does. */
function ask(rig: Rig, name: string, annotations: Readonly<Record<string, string>>): void {
  const ours = Object.entries(annotations).map(([key, value]) => [`apisix-drain.io/${key}`, value])
  rig.kubernetes.store.modify('services', 'shop', name, service => ({
    ...service,
    metadata: { ...service.metadata, annotations: Object.fromEntries(ours) as Record<string, string> }
  }))
}

const lists = (rig: Rig, id: string, nodes: readonly string[]) =>
  until(
    `upstreams/${id} lists ${nodes.join(' ') || 'nothing'}`,
    () => rig.nodes(`upstreams/${id}`).toSorted().join() === nodes.toSorted().join()
  )

describe('feature: an upstream that follows a Service', () => {
  const test = sideBySide({ config: SYNC })

  for (const barrier of [true, false])
    test(`grows, drains and shrinks with its pods; a drained pod ${barrier ? 'is sealed until it is gone' : 'is not put back while it ends'}`, async start => {
      const rig = await start({ barrier })
      const [first, second] = [rig.pod('web-1'), rig.pod('web-2', { ready: false })]
      rig.service('web', [first, second])
      rig.upstream('web', [], 'array')
      ask(rig, 'web', { upstream: 'web' })
      await lists(rig, 'web', [first.node])

      rig.isReady(second, true)
      rig.service('web', [first, second])
      await lists(rig, 'web', [first.node, second.node])

      await rig.settled()
      // The slice is late, and still reports the pod as ready.
      const { body } = await rig.drain(first)
      expect(body).to.include({ result: 'drained', evidence: barrier ? 'barrier' : 'observed' })
      const ending = barrier ? [first.node] : []
      await lists(rig, 'web', [...ending, second.node])
      const writes = rig.writes.length
      const third = rig.pod('web-3')
      rig.service('web', [first, second, third])
      await lists(rig, 'web', [...ending, second.node, third.node])
      expect(rig.writes.length - writes, 'one more write, for the pod that came').to.equal(1)
      rig.gone(first)
      rig.service('web', [second, third])
      await lists(rig, 'web', [second.node, third.node])
      await until('its drain is forgotten', () => rig.agent.loop.drains().size === 0)
      expect(rig.nodes('upstreams/web')).to.have.members([second.node, third.node])
    })

  test('scaled to 0: the last pod stays listed while it can answer', async start => {
    const rig = await start()
    const only = rig.pod('web-1', { graceSeconds: 10 })
    rig.service('web', [only])
    rig.upstream('web', [only])
    ask(rig, 'web', { upstream: 'web' })
    await until('the agent lists it', () => rig.agent.nodes('upstreams/web') === 1)
    rig.end(only)
    rig.service('web', [only])
    const { body } = await rig.hook(only)
    expect(body.result).to.equal('unproved')
    expect(rig.nodes('upstreams/web')).to.deep.equal([only.node])
  })

  test('keeps other listeners on a host’s address if host-network pods there have other ports', async start => {
    const rig = await start()
    const [first, second] = [rig.pod('web-1'), rig.pod('web-2')]
    const { store } = rig.kubernetes
    const { metadata } = store.create('pods', {
      metadata: { namespace: 'kube-system', name: 'kube-proxy' },
      spec: { hostNetwork: true, containers: [{ name: 'kube-proxy', ports: [{ containerPort: 10256 }] }] }
    })
    const status = { phase: 'Running', podIP: '192.0.2.7', podIPs: [{ ip: '192.0.2.7' }] }
    store.patchStatus('pods', 'kube-system', metadata.name, status)
    const nodePort = '192.0.2.7:30080'
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [nodePort]: 1, [first.node]: 1 } })
    rig.service('web', [first, second])
    ask(rig, 'web', { upstream: 'web' })
    await lists(rig, 'web', [nodePort, first.node, second.node])
  })

  test('is not stolen by Services of other tenants: Events on them, a mark on the page, and no write', async start => {
    const rig = await start({ config: { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' } })
    const { store } = rig.kubernetes
    for (const name of ['shop', 'thieves']) store.create('namespaces', { metadata: { name } })
    const [mine, yours] = [rig.pod('web-1'), rig.pod('api-1')]
    rig.upstream('web', [mine])
    // The agent must know the upstream before the claim. Otherwise the claim would name an upstream that does not exist.
    await until('the upstream is known', () => rig.agent.nodes('upstreams/web') === 1)
    rig.service('web', [mine])
    ask(rig, 'web', { upstream: 'web' })
    const { creationTimestamp } = store.get('services', 'shop', 'web')?.metadata ?? {}
    const isOlder = () => Date.now() >= Date.parse(creationTimestamp ?? '') + 1000
    await until('it is older than Services that are made now', isOlder)

    store.create('services', {
      metadata: {
        namespace: 'thieves',
        name: 'thief',
        annotations: { 'apisix-drain.io/upstream': 'web' }
      },
      spec: { ports: [{ name: 'http', port: 80 }] }
    })
    rig.service('api', [yours])
    ask(rig, 'api', { upstream: 'web' })
    // This claim is of a Service that selects nothing, so it has no pods and no endpoints.
    rig.service('empty', [])
    ask(rig, 'empty', { upstream: 'web' })
    const told = () =>
      store
        .list('events')
        .map(
          event =>
            event as unknown as { type: string; reason: string; note: string; regarding: { name: string } }
        )
        .filter(({ type, reason }) => type === 'Warning' && reason === 'NotSynced')
        .map(({ regarding, note }) => `${regarding.name}: ${note}`)
        .toSorted()
    const wanted = [
      'api: upstreams/web follows shop/web: this claim changes nothing',
      'empty: upstreams/web follows shop/web: this claim changes nothing',
      'thief: sync.allow does not let namespace thieves fill upstreams/web'
    ]
    await until('the losers are told', () => told().length >= 3)
    expect(told()).to.deep.equal(wanted)
    expect(rig.nodes('upstreams/web')).to.deep.equal([mine.node])
    // The first claim still works.
    const second = rig.pod('web-2')
    rig.service('web', [mine, second])
    await lists(rig, 'web', [mine.node, second.node])
  })

  test('whose first claim has neither pods nor endpoints keeps the pods and machines that it lists', async start => {
    const rig = await start()
    const [mine, probe] = [rig.pod('web-1'), rig.pod('probe-1')]
    const nodes = [mine.node, '192.0.2.1:80']
    rig.put('upstreams', 'victim', {
      type: 'roundrobin',
      nodes: Object.fromEntries(nodes.map(node => [node, 1]))
    })
    await until('the agent lists both', () => rig.agent.nodes('upstreams/victim') === 2)
    rig.service('empty', [])
    ask(rig, 'empty', { upstream: 'victim' })
    // The agent handles claims in order. Once two later claims are fulfilled, it has also handled the first.
    for (const name of ['first', 'second']) {
      rig.service(name, [probe])
      rig.put('upstreams', name, { type: 'roundrobin', nodes: {} })
      ask(rig, name, { upstream: name })
      await lists(rig, name, [probe.node])
    }
    await rig.settled()
    expect(rig.nodes('upstreams/victim')).to.have.members(nodes)
    expect(rig.writes.filter(write => write.includes('victim'))).to.deep.equal([])
  })
})

describe('feature: a drain that is undone', () => {
  const test = sideBySide()

  for (const barrier of [true, false])
    test(`has removed nothing, since only a deletion is certain${barrier ? ', and lifts the barrier' : ''}`, async start => {
      const rig = await start({ barrier })
      const [web1, web2] = [rig.pod('web-1'), rig.pod('web-2')]
      rig.upstream('array', [web1, web2], 'array')
      rig.upstream('map', [web1, web2])
      await rig.settled('map', 2)
      rig.condition(web1, 'DisruptionTarget', 'True')
      const hook = rig.hook(web1)
      const entries = () => rig.gateways[0]?.barrier?.entries.size
      if (barrier) await until('it is denied', () => entries() === 1)
      rig.condition(web1, 'DisruptionTarget', 'False')
      rig.restarted(web1, 1)
      expect((await hook).status).to.be.oneOf(barrier ? [200, 503] : [503])
      if (barrier) await rig.entryIs('free', web1)
      expect(rig.writes).to.deep.equal([])
    })
})
