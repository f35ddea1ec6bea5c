import { expect } from 'chai'
import { get } from '../build/load.ts'
import { until } from '../build/apisix.ts'
import { expires } from '../build/expires.ts'
import { mapOf } from '../build/held-nodes.ts'
import { sideBySide } from '../build/side-by-side.ts'
import type { TestPod } from '../build/pods.ts'
import { serving } from '../build/pair.ts'
import type { Rig } from '../build/rig.ts'

/** In these tests no owner lists the new pod, as with an ingress controller that is late or dead. */
describe('feature: successors', () => {
  const test = sideBySide()
  const web = (name: string) => ({ owner: { kind: 'ReplicaSet', name } })

  const served = async (rig: Rig, name: string, options: object = web('web-2b')) => {
    const pod = rig.pod(name, options)
    await rig.serve(pod)
    return pod
  }
  /** Makes an old pod, which a place lists as its only node, and a new pod, which only Kubernetes knows. */
  const replaced = async (rig: Rig, options: { readonly old?: object; readonly next?: object } = {}) => {
    const old = await served(rig, 'web-1', { ...web('web-1a'), ...options.old })
    const next = await served(rig, 'web-2', { ...web('web-2b'), ...options.next })
    rig.service('web', [old, next])
    return { old, next }
  }
  const lateOwner = async (...given: Parameters<typeof replaced>) => {
    const pods = await replaced(...given)
    const [rig] = given
    rig.upstream('web', [pods.old])
    await rig.settled()
    return pods
  }
  const body = async (rig: Rig) => await get(`${rig.gateways[0]!.urls.proxy}/`)

  for (const [key, list] of Object.entries({
    'upstreams/web': (rig: Rig, pod: TestPod) => rig.upstream('web', [pod]),
    'routes/all': (rig: Rig, { node }: TestPod) =>
      rig.put('routes', 'all', { uri: '/*', upstream: { type: 'roundrobin', nodes: { [node]: 1 } } })
  }))
    test(`the last node is sealed at once if a successor is Ready, and that one serves: ${key}`, async start => {
      const rig = await start({ barrier: true, gateways: 2 })
      const { old } = await replaced(rig)
      list(rig, old)
      await rig.settled()
      const { status, body: answer, ranMs } = await rig.drain(old)
      expect(status).to.equal(200)
      expect(answer).to.include({ result: 'drained', evidence: 'barrier' })
      expect(answer.successors).to.deep.equal([key])
      expect(answer.why).to.contain('its successors get these requests')
      expect(ranMs).to.be.below(5000)
      expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-2' })
      // nothing was written: the place still lists the pod
      expect(rig.writes).to.deep.equal([])
    })

  test('a successor gets the share of a pod while another node is free', async start => {
    const rig = await start({ barrier: true })
    const { old, next } = await replaced(rig)
    const free = await served(rig, 'web-0', web('web-1a'))
    rig.service('web', [free, old, next])
    const labels = { 'managed-by': 'apisix-ingress-controller' }
    rig.put('upstreams', 'web', { type: 'roundrobin', labels, nodes: mapOf([free, old]) })
    rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    await rig.settled()
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => body(rig)))
    expect(answers.filter(one => one.body === next.name)).to.have.lengthOf.within(8, 12)
  })

  test('the hook is answered once a successor becomes Ready', async start => {
    const rig = await start({ barrier: true })
    const { old, next } = await lateOwner(rig, { next: { ready: false } })
    const hook = rig.drain(old)
    await rig.entryIs('draining', old)
    expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-1' })
    rig.isReady(next, true)
    rig.service('web', [old, next])
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-2' })
  })

  test('a pod of another workload never takes over', async start => {
    const rig = await start({ barrier: true })
    const { old } = await lateOwner(rig, {
      old: { graceSeconds: 300 },
      next: { owner: { kind: 'ReplicaSet', name: 'canary-2b' } }
    })
    const { body: answer } = await expires(
      rig,
      old,
      'the gateway reports that nothing else is left',
      ({ why }) => why.includes('not sealed: nothing else is left')
    )
    expect(answer.successors ?? []).to.deep.equal([])
    expect((await body(rig)).body).not.to.equal('web-2')
  })

  /** Places that lead to one pod of its workload only. `keep` lists the pod there. */
  const OWN_PLACES: Record<
    string,
    {
      readonly kind: string
      readonly keep: (rig: Rig, pod: TestPod, names: Map<string, string[]>) => void
      /** The pod also has a Service of its own. */
      readonly ofOne?: true
    }
  > = {
    'a node by name': {
      kind: 'StatefulSet',
      keep(rig, { ip, port }, names) {
        names.set('one-0.one.shop.svc', [ip])
        rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [`one-0.one.shop.svc:${port}`]: 1 } })
      }
    },
    'an upstream for each pod': { kind: 'StatefulSet', keep: (rig, pod) => rig.upstream('web', [pod]) },
    'an upstream for each host': { kind: 'DaemonSet', keep: (rig, pod) => rig.upstream('web', [pod]) },
    'an upstream that follows the Service of one pod': {
      kind: 'StatefulSet',
      ofOne: true,
      keep(rig, pod) {
        rig.upstream('web', [pod])
        rig.kubernetes.store.modify('services', 'shop', 'one-0', service => ({
          ...service,
          metadata: { ...service.metadata, annotations: { 'apisix-drain.io/upstream': 'web' } }
        }))
      }
    }
  }
  for (const [name, { kind, keep, ofOne }] of Object.entries(OWN_PLACES))
    test(`a pod that is addressed on its own is followed by the next one of its role only: ${name}`, async start => {
      const names = new Map<string, string[]>()
      const rig = await start({ barrier: true, names, config: { SYNC_ALLOW: 'shop/*' } })
      const one = (i: number, ready = true) =>
        rig.pod(`one-${i}`, {
          owner: { kind, name: 'one' },
          host: `host-${i}`,
          labels: { app: 'one', 'apps.kubernetes.io/pod-index': `${i}` },
          ready
        })
      const old = one(0)
      const others = [one(1), one(2)]
      const publish = (first: TestPod) => {
        rig.service('one', [first, ...others])
        if (ofOne) rig.service('one-0', [first])
      }
      const backend = await rig.serve(old)
      for (const pod of others) await rig.serve(pod)
      publish(old)
      keep(rig, old, names)
      rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
      await rig.settled()
      const answers = async () =>
        new Set(await Promise.all(Array.from({ length: 20 }, () => body(rig).then(one => one.body))))
      const hook = rig.drain(old)
      await until(
        'it has an entry',
        () => rig.gateways[0]!.barrier?.entries.look(old.ip, old.port) !== 'free'
      )
      expect([...(await answers())]).to.deep.equal(['one-0'])
      await backend.close()
      rig.gone(old)
      const next = one(0, false)
      await rig.serve(next)
      publish(next)
      await hook
      await rig.settled()
      expect([...(await answers())].filter(answer => answer.startsWith('one-'))).to.deep.equal([])
      rig.isReady(next, true)
      publish(next)
      await until('the next pod serves', () => answers().then(all => [...all].join() === 'one-0'))
    })

  test('the only pod of a StatefulSet: its hook is answered as soon as nothing is in flight, since the next one comes after it', async start => {
    const rig = await start({ barrier: true })
    const only = rig.pod('db-0', { owner: { kind: 'StatefulSet', name: 'db' }, graceSeconds: 3600 })
    const backend = await rig.serve(only)
    rig.service('db', [only])
    rig.upstream('web', [only])
    rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    await rig.settled()
    const inFlight = get(`${rig.gateways[0]!.urls.proxy}/?hold`)
    await until('it is in flight', () => backend.open > 0)
    const hook = rig.drain(only)
    await until('new requests are refused', async () => (await body(rig)).status === 503)
    backend.release()
    const { status, body: answer } = await hook
    expect({ status, ...answer }).to.include({ status: 200, result: 'drained', noReplacement: true })
    expect((await inFlight).status).to.equal(200)
    expect((await body(rig)).status).to.equal(503)
  })

  for (const [end, strategy, isHeld] of [
    ['it is recreated', 'Recreate', false],
    ['it updates', 'RollingUpdate', true]
  ] as const)
    test(`the only pod of a Deployment ends because ${end}: it is ${isHeld ? 'held until the next one is Ready' : 'sealed at once'}`, async start => {
      const rig = await start({ barrier: true })
      const { old, next } = await lateOwner(rig, { next: { ready: false } })
      rig.gone(next)
      rig.service('web', [old])
      const { store } = rig.kubernetes
      store.modify('replicasets', 'shop', 'web-1a', set => ({
        ...set,
        metadata: {
          ...set.metadata,
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'web', controller: true }
          ]
        },
        spec: { ...set.spec, replicas: 0 }
      }))
      const { selector, template } = store.get('replicasets', 'shop', 'web-1a')!.spec
      store.create('deployments', {
        metadata: { namespace: 'shop', name: 'web' },
        spec: { replicas: 1, selector, template, strategy: { type: strategy } }
      })
      await rig.settled()
      const hook = rig.drain(old)
      if (isHeld) {
        for (let i = 0; i < 200; i += 1) expect((await body(rig)).body).to.equal('web-1')
        const fresh = await served(rig, 'web-3')
        rig.service('web', [old, fresh])
      }
      const { status, body: answer } = await hook
      expect({ status, ...answer }).to.include({ status: 200, result: 'drained', noReplacement: !isHeld })
    })

  test('scaled to 1 while an ingress controller writes stale full syncs: every request goes to the pod that stays', async start => {
    const rig = await start({ barrier: true })
    const sync = (pods: readonly TestPod[]) =>
      rig.put('upstreams', 'web', {
        type: 'roundrobin',
        labels: { 'managed-by': 'apisix-ingress-controller' },
        nodes: mapOf(pods)
      })
    const [first, second] = [rig.pod('web-1', web('web-1a')), rig.pod('web-2', web('web-1a'))] as const
    const stays = await served(rig, 'web-3', web('web-1a'))
    rig.service('web', [first, second, stays])
    sync([first, second, stays])
    rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    await rig.settled()
    const deferredUntil = performance.now() + 25_000
    const answers = await Promise.all([first, second].map(pod => rig.drain(pod)))
    for (const { body: answer } of answers)
      expect(answer).to.include({ result: 'drained', evidence: 'barrier' })
    for (const pod of [first, second]) rig.gone(pod)
    rig.service('web', [stays])
    for (let turn = 0; turn < 5; turn += 1) {
      sync(turn % 2 === 0 ? [first, second] : [first, second, stays])
      await rig.settled()
      for (let i = 0; i < 10; i += 1) expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-3' })
      const writes = [...rig.writes]
      if (performance.now() < deferredUntil) expect(writes).to.deep.equal([])
    }
  })

  test('a chain: the successor ends too, and is sealed like any other node', async start => {
    const rig = await start({ barrier: true })
    const { old, next } = await lateOwner(rig)
    expect((await rig.drain(old)).body).to.include({ result: 'drained' })
    const last = await served(rig, 'web-3')
    rig.end(next)
    rig.service('web', [old, next, last])
    const { body: answer } = await rig.hook(next)
    expect(answer).to.include({ result: 'drained', evidence: 'barrier' })
    expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-3' })
  })

  test('a new one is in one entry at once, and in all with their renewal; one that restarts leaves them then', async start => {
    const rig = await start({ barrier: true, config: { APISIX_BARRIER_TTL: '3s' } })
    const first = await served(rig, 'web-1')
    const [second, third] = [await served(rig, 'web-2'), await served(rig, 'web-3')]
    const last = await served(rig, 'web-4')
    rig.service('web', [first, second, third])
    rig.upstream('web', [first, second, third])
    rig.restarted(third, 0)
    await rig.settled()
    const { entries } = rig.gateways[0]!.barrier!
    const named = (pod: TestPod) => Object.values(entries.ofUid(pod.uid)[0]?.successors ?? {}).flat()
    for (const pod of [first, second]) {
      expect((await rig.drain(pod)).body).to.include({ result: 'drained' })
      rig.gone(pod)
    }
    rig.service('web', [third, last])
    const all = (holds: (names: string[]) => boolean) => [first, second].every(pod => holds(named(pod)))
    await until('both name both', () => all(names => [third, last].every(pod => names.includes(pod.node))))
    // Nothing but the hook shows this restart.
    expect((await rig.hook(third, 'container=app&sleep=10m')).body).to.include({ result: 'drained' })
    await until('both name the last one only', () => all(names => names.join() === last.node))
  })

  test('the only successor ends before the next pod is Ready: it serves until then', async start => {
    const rig = await start({ barrier: true, config: { APISIX_BARRIER_TTL: '3s' } })
    const { old, next } = await lateOwner(rig)
    expect((await rig.drain(old)).body).to.include({ result: 'drained' })
    rig.gone(old)
    const last = await served(rig, 'web-3', { ...web('web-2b'), ready: false })
    const hook = rig.drain(next)
    const gateway = rig.gateways[0]!
    await rig.entryIs('draining', next)
    const expires = () => gateway.barrier!.entries.ofUid(old.uid)[0]!.expires
    const before = expires()
    await until('the entry of the first pod was put twice more', () => expires() > before + 1.5)
    for (let i = 0; i < 20; i += 1) expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-2' })
    expect(gateway.barrier?.entries.look(next.ip, next.port)).to.equal('draining')
    rig.isReady(last, true)
    rig.service('web', [next, last])
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-3' })
  })

  test('on the address of its host: the next pod there is sent no request before it is Ready', async start => {
    const rig = await start({ barrier: true })
    const onHost = { ...web('web-1a'), hostNetwork: true }
    const old = rig.pod('web-1', onHost)
    const successor = await served(rig, 'web-2', { ...web('web-2b'), hostNetwork: true })
    rig.service('web', [old, successor])
    const [backend] = await serving(rig, old)
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await backend.close()
    rig.gone(old)
    const next = rig.pod('web-3', { ...onHost, ip: old.ip, ready: false })
    rig.service('web', [successor])
    await until('the drain is over', () => rig.agent.loop.drains().size === 0)
    for (let i = 0; i < 20; i += 1) expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-2' })
    await rig.serve(next)
    rig.isReady(next, true)
    rig.service('web', [successor, next])
    await rig.entryIs('free', old)
    expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-3' })
    expect(rig.writes).to.deep.equal([])
  })

  /** Makes an entry in the gateway whose pod is gone, and whose agent is gone too. */
  const orphaned = async (rig: Rig) => {
    const startedAt = new Date(Date.now() - 60_000).toISOString()
    const { old, next } = await lateOwner(rig, { next: { startedAt } })
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    rig.gone(old)
    rig.service('web', [next])
    await rig.agent.close()
    const entry = () => rig.gateways[0]!.barrier!.entries.ofUid(old.uid)[0]
    return { old, next, entry, before: entry()!.expires }
  }
  /** Starts another agent. When a hook of a pod that no place lists is answered, the agent has read the gateway. */
  const nextAgent = async (rig: Rig) => {
    const agent = await rig.readyAgent()
    const idle = rig.pod('idle')
    await until('it sees the last pod', () => agent.knows(idle.ip))
    expect((await rig.drain(idle, '', undefined, agent)).body).to.include({ evidence: 'barrier' })
  }

  test('an agent that begins after the pod is gone keeps its entry, and names the pods that serve now', async start => {
    const rig = await start({ barrier: true })
    const { old, next, entry, before } = await orphaned(rig)
    const last = await served(rig, 'web-3')
    rig.service('web', [next, last])
    await rig.startAgent()
    await until('the entry is put again', () => entry()!.expires > before)
    const named = () => entry()!.successors?.[old.port]
    await until('it names both', () => named()?.length === 2)
    expect(named()).to.have.members([next.node, last.node])
    expect(rig.writes).to.deep.equal([])
  })

  test('an agent that begins removes an entry if a pod that started later has its address', async start => {
    const rig = await start({ barrier: true })
    const { old, entry } = await orphaned(rig)
    rig.pod('other', { owner: { kind: 'ReplicaSet', name: 'other-1a' }, ip: old.ip })
    await nextAgent(rig)
    await until('it is gone', () => entry() === undefined)
  })

  test('an agent that begins leaves an entry alone if a pod of another workload has the address of its successor', async start => {
    const rig = await start({ barrier: true })
    const { next, entry, before } = await orphaned(rig)
    rig.gone(next)
    rig.service('web', [])
    const other = rig.pod('other', { owner: { kind: 'ReplicaSet', name: 'other-1a' }, ip: next.ip })
    rig.service('other', [other])
    await nextAgent(rig)
    expect(entry()!.expires).to.equal(before)
  })

  test('a ghost that no agent saw keeps no hook, and a request that it fails goes to a successor (A9)', async start => {
    const rig = await start({ barrier: true, config: { SYNC_POD_RANGES: '127.0.0.0/8' } })
    const { old } = await replaced(rig)
    const ghost = `${old.ip.replace(/\d+$/, '254')}:${old.port}`
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [ghost]: 1, [old.node]: 1 } })
    rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    await rig.settled()
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    for (let i = 0; i < 4; i++) expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-2' })
  })

  test('the ghosts of two workloads stay listed while no node serves: one of them leads to the next pod', async start => {
    const rig = await start({ barrier: true })
    const { old, next } = await replaced(rig)
    const other = rig.pod('web-0', { owner: { kind: 'ReplicaSet', name: 'other-1a' } })
    rig.service('web', [other, old, next])
    rig.upstream('web', [other, old])
    await rig.settled()
    for (const pod of [old, other]) rig.gone(pod)
    await until('both are known as gone', () => rig.agent.loop.lastPlan().kept.length === 2)
    expect(rig.writes).to.deep.equal([])
    expect(rig.nodes('upstreams/web')).to.have.members([other.node, old.node])
    await until('the next pod serves', async () => (await body(rig)).body === next.name)
  })

  test('a ghost: the pod is deleted by force, nothing is written, and requests go to the next pod', async start => {
    const rig = await start({
      barrier: true,
      config: { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' }
    })
    const { old, next } = await lateOwner(rig)
    const goneAt = performance.now()
    rig.gone(old)
    rig.service('web', [next])
    await rig.entryIs('sealed', old)
    expect(await body(rig)).to.deep.equal({ status: 200, body: 'web-2' })
    expect(rig.writes).to.deep.equal([])
    expect(rig.nodes('upstreams/web')).to.deep.equal([old.node])
    const { holders } = await rig.agent.state()
    expect(holders.find(({ key }) => key === 'upstreams/web')?.onSuccessors?.nodes).to.deep.equal([next.node])
    const metrics = await rig.agent.metrics()
    const [, age] = /^apisix_drain_succession_oldest_seconds (\S+)$/m.exec(metrics) ?? []
    expect(Number(age)).to.be.within(0.001, (performance.now() - goneAt) / 1000)
  })

  const REFUSES = { 'apisix-drain.io/successors': 'false' }
  /** Each takes away a named successor, and returns its Service as it is then. */
  const LOST: Record<
    string,
    { readonly options?: object; readonly lose: (rig: Rig, pod: TestPod) => unknown }
  > = {
    'is not Ready': { lose: (rig, pod) => rig.isReady(pod, false) },
    'ends, and asks not to be drained': {
      options: { annotations: { 'apisix-drain.io/skip': 'true' } },
      lose: (rig, pod) => rig.end(pod)
    },
    'is gone, and a pod of another namespace has its address': {
      lose(rig, pod) {
        rig.gone(pod)
        rig.pod('bank-1', { namespace: 'bank', ip: pod.ip, owner: { kind: 'ReplicaSet', name: 'bank-1a' } })
      }
    },
    'begins to refuse': {
      lose: (rig, { namespace, name }) =>
        rig.kubernetes.store.modify('pods', namespace, name, pod => ({
          ...pod,
          metadata: { ...pod.metadata, annotations: REFUSES }
        }))
    },
    'gets another label': {
      lose: (rig, { namespace, name }) =>
        rig.kubernetes.store.modify('pods', namespace, name, pod => ({
          ...pod,
          metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, role: 'replica' } }
        }))
    },
    'gets another address': {
      async lose(rig, pod) {
        const ip = rig.address()
        await rig.serve({ ...pod, ip, name: 'web-2, moved' })
        const podIPs = [{ $patch: 'replace' }, { ip }]
        rig.kubernetes.store.patchStatus('pods', pod.namespace, pod.name, { podIP: ip, podIPs })
      }
    }
  }
  for (const [what, { options = {}, lose }] of Object.entries(LOST))
    test(`a named successor leaves the sealed entries at once: it ${what}`, async start => {
      const rig = await start({ barrier: true, gateways: 2 })
      const { old, next } = await lateOwner(rig, { next: options })
      const other = await served(rig, 'web-3')
      rig.service('web', [old, next, other])
      await rig.settled()
      expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
      rig.gone(old)
      rig.service('web', [next, other])
      const named = () =>
        rig.gateways.map(({ barrier }) =>
          barrier!.entries.ofUid(old.uid)[0]?.successors?.[old.port]?.toSorted()
        )
      expect(named()).to.deep.equal(Array(2).fill([next.node, other.node].toSorted()))
      await lose(rig, next)
      rig.service('web', rig.object(next) ? [next, other] : [other])
      const hasLeft = () => named().every(nodes => nodes?.includes(other.node) && !nodes.includes(next.node))
      await until('its address is not named any more', hasLeft, 1000)
      for (let i = 0; i < 20; i += 1) expect((await body(rig)).body).to.be.oneOf(['web-3', 'web-2, moved'])
    })
})
