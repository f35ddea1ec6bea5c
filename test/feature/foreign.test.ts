import { expect } from 'chai'
import { crc32 } from 'node:zlib'
import { systemClock } from '../../agent/base/clock.ts'
import { standaloneTarget } from '../../sandbox/owner/adc-target.ts'
import { until } from '../build/apisix.ts'
import { arrayOf, mapOf } from '../build/held-nodes.ts'
import { get } from '../build/load.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const idOf = (name: string): string => crc32(name).toString(16)

/** Puts an upstream as an ingress controller writes it for a Service of this namespace, with its own route. Returns its id. */
function ofController(rig: Rig, namespace: string, service: string, pods: readonly TestPod[]): string {
  const name = `${namespace}_${service}_80`
  const id = idOf(name)
  rig.put('upstreams', id, {
    name,
    labels: { 'managed-by': 'apisix-ingress-controller' },
    type: 'roundrobin',
    nodes: mapOf(pods)
  })
  rig.put('routes', id, { uri: `/${namespace}-${service}`, upstream_id: id })
  return id
}

describe('feature: an upstream of another namespace that lists only this pod', () => {
  const test = sideBySide({
    barrier: true,
    loop: { foreignHoldMs: 1000 }
  })

  const pair = async (rig: Rig) => {
    const [old, fresh] = [rig.pod('web-1', { graceSeconds: 30 }), rig.pod('web-2')]
    for (const pod of [old, fresh]) await rig.serve(pod)
    ofController(rig, 'shop', 'web', [old, fresh])
    return { old, fresh }
  }
  const ready = async (rig: Rig, ...ids: readonly string[]) => {
    await rig.settled()
    for (const id of ids) await until('the agent lists it', () => rig.agent.nodes(`upstreams/${id}`) > 0)
  }

  for (const attack of [1, 20])
    test(`does not hold its hook for the whole grace (${attack} of them)`, async start => {
      const rig = await start({ gateways: 2 })
      const { old, fresh } = await pair(rig)
      const ids = Array.from({ length: attack }, (_, i) => ofController(rig, 'evil', `trap-${i}`, [old]))
      await ready(rig, ...ids)
      rig.end(old)
      ofController(rig, 'shop', 'web', [fresh])
      const { body, ms } = await rig.hook(old)
      expect(body).to.include({ result: 'drained', evidence: 'barrier' })
      expect(ms).to.be.above(900)
      const { proxy } = rig.gateways[0]!.urls
      expect((await get(`${proxy}/shop-web`)).body).to.equal('web-2')
      expect((await get(`${proxy}/evil-trap-0`)).status).to.equal(503)
      expect(rig.nodes(`upstreams/${ids[0]}`)).to.deep.equal([old.node])
    })

  test('does not hold it in standalone mode, in which nothing is written', async start => {
    const rig = await start({ standalone: true })
    const [old, fresh] = [rig.pod('web-1', { graceSeconds: 30 }), rig.pod('web-2')]
    const write = standaloneTarget(() =>
      rig.gateways.map(({ urls }) => ({ url: urls.admin ?? '', key: rig.barrierToken }))
    )
    const [own, trap] = ['shop_web_0', 'evil_trap_0']
    await write({
      upstreams: [
        { id: idOf(own), name: own, type: 'roundrobin', nodes: arrayOf([old, fresh]) },
        { id: idOf(trap), name: trap, type: 'roundrobin', nodes: arrayOf([old]) }
      ],
      services: [],
      routes: [own, trap].map(name => ({ id: idOf(name), name, uri: `/${name}`, upstream_id: idOf(name) }))
    })
    await rig.settled()
    await until('the agent lists it', () => rig.agent.nodes(`upstreams/${idOf(trap)}`) > 0)
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(rig.writes).to.deep.equal([])
  })

  test('does not hold it with an address that nothing answers, either', async start => {
    const rig = await start()
    const { old } = await pair(rig)
    const unready = rig.pod('trap-1', { namespace: 'evil', ready: false })
    const id = ofController(rig, 'evil', 'trap', [old, unready])
    await ready(rig, id)
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
  })

  for (const others of [1, 20])
    test(`never lets the pod's own namespace lose its last node (${others} beside it)`, async start => {
      const rig = await start()
      const old = rig.pod('web-1', { graceSeconds: 30 })
      await rig.serve(old)
      const own = ofController(rig, 'shop', 'web', [old])
      const ids = Array.from({ length: others }, (_, i) => ofController(rig, 'evil', `trap-${i}`, [old]))
      await ready(rig, own, ...ids)
      let isAnswered = false
      const hook = rig.drain(old).finally(() => (isAnswered = true))
      const drain = () => rig.agent.loop.drains().get(old.uid as never)
      await until(
        'the hold of the others is over',
        () => (drain()?.since ?? Infinity) + 1500 < systemClock.now()
      )
      const { proxy } = rig.gateways[0]!.urls
      expect((await get(`${proxy}/shop-web`)).body).to.equal('web-1')
      expect(isAnswered).to.equal(false)
      const fresh = rig.pod('web-2')
      await rig.serve(fresh)
      ofController(rig, 'shop', 'web', [fresh])
      expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
      expect((await get(`${proxy}/shop-web`)).body).to.equal('web-2')
    })
})

describe('feature: EndpointSlices of another namespace that name addresses and pods of this one', () => {
  const test = sideBySide({ barrier: true })

  test('put nothing but their own addresses into the deny-list, begin no drain, and cost the pod no evidence', async start => {
    const rig = await start({ gateways: 2 })
    const owner = { kind: 'ReplicaSet', name: 'web-1a' }
    const [old, stays] = [rig.pod('web-1', { owner, graceSeconds: 30 }), rig.pod('web-2', { owner })]
    const mine = rig.pod('evil-1', { namespace: 'evil', graceSeconds: 30 })
    const others = rig.pod('evil-2', { namespace: 'evil' })
    for (const pod of [old, stays, mine, others]) await rig.serve(pod)
    // The owner is late, so requests need the successor that the agent finds by the Services of the pod.
    const own = ofController(rig, 'shop', 'web', [old])
    ofController(rig, 'evil', 'trap', [mine, others])
    rig.service('web', [old, stays])
    const forge = (name: string, pod: TestPod, terminating: boolean) =>
      rig.kubernetes.store.create('endpointslices', {
        metadata: { namespace: 'evil', name, labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        ports: [{ name: 'http', port: stays.port }],
        endpoints: [stays, old].map(({ ip }) => ({
          addresses: [ip],
          conditions: { ready: !terminating, serving: !terminating, terminating },
          targetRef: { kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid }
        }))
      })
    for (const [i, pod] of [mine, old].entries())
      for (const terminating of [false, true]) forge(`forged-${i}-${String(terminating)}`, pod, terminating)
    await rig.settled(own, 1)
    const look = ({ ip, port }: TestPod) => rig.gateways.map(({ barrier }) => barrier?.entries.look(ip, port))

    expect((await rig.drain(mine)).status).to.equal(200)
    expect([look(mine), look(old), look(stays)]).to.deep.equal(
      ['sealed', 'free', 'free'].map(state => [state, state])
    )
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect([...rig.agent.loop.drains().values()].map(({ pod }) => pod.name)).to.have.members([
      'evil-1',
      'web-1'
    ])
    expect((await get(`${rig.gateways[0]!.urls.proxy}/shop-web`)).body).to.equal('web-2')
    expect(look(stays)).to.deep.equal(['free', 'free'])
  })
})
