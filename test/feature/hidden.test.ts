import { isDeepStrictEqual } from 'node:util'

import { expect } from 'chai'
import type { JsonObject } from '../../sandbox/apisix/json.ts'
import { toServiceFact } from '../../agent/kubernetes/facts/service-store.ts'
import { until } from '../build/apisix.ts'
import { pair } from '../build/pair.ts'
import type { PodOptions, TestPod } from '../build/pods.ts'
import { SHORT, type Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

type Fields = Readonly<Record<string, unknown>>

/** Makes or changes a Service, with fields that only the real API server and cloud providers set. Its slice may come later. */
function serviceIs(rig: Rig, name: string, spec: Fields, status: Fields = {}, namespace = 'shop'): void {
  const { store } = rig.kubernetes
  const made = store.get('services', namespace, name)
  const service = {
    metadata: { namespace, name },
    spec: { ports: [{ name: 'http', port: 80 }], ...spec }
  }
  if (made) store.update('services', { ...made, ...service, metadata: made.metadata })
  else store.create('services', service)
  if (Object.keys(status).length > 0) store.patchStatus('services', namespace, name, status)
}

const servicesSeen = (rig: Rig): boolean =>
  rig.kubernetes.store
    .list('services')
    .every(service =>
      isDeepStrictEqual(
        rig.agent.service(service.metadata.namespace!, service.metadata.name),
        toServiceFact(service)
      )
    )

const HOST = '10.9.0.1'

interface Hidden {
  readonly pod?: PodOptions
  /** Default: Service `web` has the pod. */
  readonly inService?: false
  /** Only the workers see it. */
  readonly withBarrier?: true
  readonly make?: (rig: Rig) => void
  readonly upstream: JsonObject | ((pod: TestPod) => JsonObject)
  readonly why: string | ((pod: TestPod) => string)
}

const onlyNode = (node: string): JsonObject => ({ type: 'roundrobin', nodes: { [node]: 1 } })

/** Addresses that an upstream lists instead of the pod's address, and the objects by which they lead to the pod. */
const PLACES: Readonly<Record<string, Hidden>> = {
  'ClusterIP of its Service': {
    upstream: { nodes: { '10.97.0.12:80': 1 } },
    make: rig => serviceIs(rig, 'web', { clusterIP: '10.97.0.12', clusterIPs: ['10.97.0.12'] }),
    why: 'upstreams/web: 10.97.0.12:80 is the ClusterIP of Service shop/web'
  },
  'NodePort of its Service, at an address that no watched pod has (A26)': {
    upstream: onlyNode(`${HOST}:30080`),
    make: rig =>
      serviceIs(rig, 'web', { type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30080 }] }),
    why: `upstreams/web: ${HOST}:30080 is a NodePort of Service shop/web`
  },
  'hostNetwork without declared ports': {
    pod: { hostNetwork: true, declaresNone: true },
    inService: false,
    upstream: ({ node }) => onlyNode(node),
    why: 'shop/web-1: no port at its host’s address can be denied for it'
  },
  'hostNetwork with another declared port, listed at both (A18)': {
    pod: { hostNetwork: true },
    inService: false,
    upstream: ({ node }) => ({ nodes: { [node]: 1, [node.replace(/:\d+$/, ':9999')]: 1 } }),
    why: ':9999 is at its host’s address, and no pod declares this port'
  },
  'second address of the pod, in a slice only (A24)': {
    upstream: onlyNode('10.97.0.99:28080'),
    make: ({ kubernetes: { store } }) => {
      const { uid } = store.get('pods', 'shop', 'web-1')!.metadata
      store.create('endpointslices', {
        metadata: { namespace: 'shop', name: 'web-net1', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 28080 }],
        endpoints: [
          { addresses: ['10.97.0.99'], conditions: {}, targetRef: { kind: 'Pod', name: 'web-1', uid } }
        ]
      })
    },
    why: 'upstreams/web: 10.97.0.99:28080 is an address of the pod by EndpointSlice shop/web-net1 only'
  },
  'ExternalName of its Service': {
    upstream: { nodes: { 'outer.bank:80': 1 } },
    make: rig =>
      serviceIs(
        rig,
        'outer',
        { type: 'ExternalName', externalName: 'web.shop.svc.cluster.local' },
        {},
        'bank'
      ),
    why: 'outer.bank:80 is a name of Service bank/outer'
  },
  'load balancer of its Service': {
    upstream: { nodes: { 'lb.example.com:80': 1 } },
    make: rig =>
      serviceIs(
        rig,
        'web',
        { type: 'LoadBalancer' },
        { loadBalancer: { ingress: [{ hostname: 'lb.example.com' }] } }
      ),
    why: 'lb.example.com:80 is a name of Service shop/web'
  },
  'a plugin that connects by itself (A19)': {
    withBarrier: true,
    upstream: onlyNode('192.0.2.7:80'),
    make: rig => rig.put('routes', 'r', { plugins: { 'forward-auth': { uri: 'http://web.shop.svc:80/' } } }),
    why: 'routes/r/plugins/forward-auth: web.shop.svc:80 is a name of Service shop/web'
  }
}

describe('feature: places that hide a pod', () => {
  const test = sideBySide({ config: SHORT })

  for (const [what, { pod: options, inService = true, withBarrier, upstream, make, why }] of Object.entries(
    PLACES
  ))
    for (const barrier of withBarrier ? [true] : [false, true])
      test(`${what}${barrier ? ', with the barrier' : ''}: 503 at once, with the place`, async start => {
        const rig = await start({ barrier })
        const [old, fresh] = [rig.pod('web-1', options), rig.pod('web-2')]
        if (inService) rig.service('web', [old, fresh])
        make?.(rig)
        rig.put('upstreams', 'web', typeof upstream === 'function' ? upstream(old) : upstream)
        rig.put('routes', 'web', { uri: '/*', upstream_id: 'web' })
        await rig.settled()
        await until('the agent has seen it', () => rig.agent.holder('upstreams/web') !== undefined)
        await until('the agent has seen the Services', () => servicesSeen(rig))
        const { status, body, ranMs } = await rig.drain(old)
        expect(ranMs).to.be.below(1000)
        expect({ status, evidence: body.evidence }).to.deep.equal({ status: 503, evidence: 'none' })
        expect(body.why).to.contain(typeof why === 'function' ? why(old) : why)
        expect(body.change).to.be.a('string').that.is.not.empty
      })

  for (const none of [true, false])
    test(`are known with the barrier ${none ? 'and no' : 'while there is no answer of the'} Admin API; a pod that is listed itself is drained (R4)`, async start => {
      const rig = await start({ barrier: true, agent: false })
      const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
      const [other, next] = [rig.pod('other-1'), rig.pod('other-2')]
      rig.service('web', [old, fresh])
      rig.service('other', [other, next])
      serviceIs(rig, 'web', { clusterIP: '10.97.0.12', clusterIPs: ['10.97.0.12'] })
      rig.put('upstreams', 'web', { nodes: { '10.97.0.12:80': 1 } })
      rig.put('upstreams', 'other', { nodes: { [other.node]: 1, [next.node]: 1 } })
      for (const id of ['web', 'other']) rig.put('routes', id, { uri: `/${id}`, upstream_id: id })
      await rig.settled()
      if (!none) await rig.admin.listener.reach('refused')
      await rig.readyAgent(none ? { APISIX_ADMIN_URL: undefined, APISIX_ADMIN_KEY: undefined } : {})
      const { status, body } = await rig.drain(old)
      expect({ status, evidence: body.evidence }, body.why).to.deep.equal({ status: 503, evidence: 'none' })
      expect(body.why).to.contain('upstreams/web: 10.97.0.12:80 is the ClusterIP of Service shop/web')
      const drained = await rig.drain(other)
      expect(drained.status, drained.body.why).to.equal(200)
    })

  test('are none by a registry that the workers read, with the barrier; without it, nothing is proved (A12, A27)', async start => {
    for (const barrier of [true, false]) {
      const rig = await start({ barrier })
      const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
      rig.service('web', [old, fresh])
      rig.put('upstreams', 'web', onlyNode(old.node))
      rig.put('upstreams', 'other', { type: 'roundrobin', discovery_type: 'nacos', service_name: 'WEB' })
      await rig.settled()
      await until('the agent has seen it', () => rig.agent.holder('upstreams/other') !== undefined)
      const { status, body, ranMs } = await rig.drain(old)
      expect(ranMs).to.be.below(1000)
      expect(status, body.why).to.equal(barrier ? 200 : 503)
      if (barrier) continue
      expect(body.why).to.contain('APISIX finds its nodes, so reads prove nothing')
      expect(body.change).to.contain('load the plugin')
    }
  })

  for (const name of ['web-1.web.shop', 'web-1.web'])
    test(`are short names of pods, without the plugin: ${name} (A25)`, async start => {
      const rig = await start()
      const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
      rig.service('web', [old, fresh])
      rig.put('upstreams', 'web', { nodes: { [`${name}:80`]: 1, [fresh.node]: 1 } })
      await until('the agent has seen it', () => rig.agent.holder('upstreams/web') !== undefined)
      const { status, body } = await rig.drain(old)
      expect({ status, evidence: body.evidence }, body.why).to.deep.equal({ status: 503, evidence: 'none' })
    })

  test('are none if no route has an upstream (A29)', async start => {
    const rig = await start({ barrier: true })
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    rig.service('web', [old, fresh])
    rig.put('routes', 'away', { uri: '/*', plugins: { redirect: { uri: '/away' } } })
    await rig.settled()
    const { status, body } = await rig.drain(old)
    expect({ status, evidence: body.evidence }, body.why).to.deep.equal({ status: 200, evidence: 'barrier' })
  })

  test('machines, external names and other Services hide nothing from the barrier', async start => {
    const rig = await start({ barrier: true })
    const [old, other] = [rig.pod('web-1'), rig.pod('other-1')]
    rig.service('web', [old])
    rig.service('other', [other])
    serviceIs(rig, 'other', { clusterIP: '10.97.0.13', clusterIPs: ['10.97.0.13'] })
    rig.put('upstreams', 'web', {
      nodes: { '10.97.0.13:80': 1, 'web.example.com:80': 1, 'other.shop.svc:80': 1, '192.0.2.7:80': 1 }
    })
    await rig.settled()
    await until('the agent has seen it', () => rig.agent.holder('upstreams/web') !== undefined)
    const { status, body } = await rig.drain(old)
    expect({ status, result: body.result }, body.why).to.deep.equal({ status: 200, result: 'drained' })
  })

  for (const stream of ['unlisted', true] as const)
    test(`L4 is on and not covered, ${stream === true ? 'without' : 'and the Admin API lists no'} stream routes: 503 with what to load (R6)`, async start => {
      const rig = await start({ barrier: true, stream })
      const [old] = await pair(rig)
      const { status, body } = await rig.drain(old)
      expect({ status, evidence: body.evidence }, body.why).to.deep.equal({ status: 503, evidence: 'none' })
      expect(body.why).to.contain('L4 is on and not covered')
      expect(body.change).to.contain('let the plugin cover TCP')
    })

  for (const all of [true, false])
    test(`L4 is ${all ? '' : 'not '}answered by the barrier if ${all ? 'every gateway covers' : 'one gateway does not cover'} it`, async start => {
      const config = all ? { APISIX_ADMIN_TIMEOUT: '8s' } : {}
      const rig = await start({ barrier: true, stream: true, gateways: 2, config })
      for (const [i, gateway] of rig.gateways.entries()) gateway.barrier!.coverL4(all || i === 0)
      const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
      rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [old.node]: 1, [fresh.node]: 1 } })
      rig.put('routes', 'web', { uri: '/*', upstream_id: 'web' })
      rig.put('stream_routes', 's', { server_port: 9100, upstream_id: 'web' })
      await rig.settled('web', 2)
      const { body } = await rig.drain(old)
      if (all) expect(body.evidence, body.why).to.equal('barrier')
      else {
        expect(body.evidence).to.not.equal('barrier')
        expect(body.why).to.contain('L4 is on and not covered')
      }
    })
})
