import { expect } from 'chai'
import type { Endpoint, EndpointFact } from '../../../agent/rules/drain/facts.ts'
import { toEndpointFact } from '../../../agent/kubernetes/facts/slice-store.ts'
import { readNodes } from '../../../agent/gateway/apisix/nodes.ts'
import type { JsonObject } from '../../../sandbox/apisix/json.ts'
import { pod } from '../../build/pod.ts'
import { service, sliceOf, syncWorld } from '../../build/sync-world.ts'

describe('an upstream that follows a Service', () => {
  /** Starts an agent whose upstream `web` has these nodes and follows the Service `web`, which has these slices. */
  async function following(nodes: JsonObject | JsonObject[] | undefined, ...slices: readonly EndpointFact[]) {
    const world = syncWorld()
    if (nodes) world.apisix.set('upstreams', 'web', { nodes })
    world.service(service('web', { upstream: 'web' }))
    for (const slice of slices) world.slice(slice)
    await world.start()
    await world.pass(2000)
    const lists = () =>
      (readNodes(world.apisix.value('upstreams', 'web')?.['nodes'])?.nodes ?? []).map(n => n.key)
    return { world, lists }
  }
  /** An endpoint that somebody wrote into a slice by hand: it has no pod. */
  const byHand = (address: string): Endpoint => ({
    address,
    podUid: undefined,
    ready: true,
    serving: true,
    terminating: false
  })

  it('loses a node that its slices no longer list, if the agent saw it there: no pod and no mark shows whose it was', async () => {
    const web = pod('web-1')
    const slice = sliceOf('web', [web])
    const machines = { ...slice, uid: 'by-hand', name: 'by-hand', endpoints: [byHand('192.0.2.7')] }
    const { world, lists } = await following({ '192.0.2.9:80': 1 }, slice, machines)
    world.pod(web)
    await world.pass(2000)
    expect(lists()).to.have.members(['192.0.2.9:80', '192.0.2.7:8080', '10.0.0.1:8080'])
    world.slice({ ...machines, endpoints: [] })
    await world.pass(2000)
    expect(lists()).to.have.members(['192.0.2.9:80', '10.0.0.1:8080'])
    await world.agent.stop()
  })

  it('that does not exist is refused with an Event, and followed once somebody has made it', async () => {
    const { world, lists } = await following(undefined, sliceOf('web', [pod('web-1')]))
    expect(world.events).to.deep.equal(['web: upstreams/web does not exist: make it'])
    expect(lists()).to.deep.equal([])
    world.apisix.set('upstreams', 'web', { nodes: {} })
    await world.pass(40_000, 1000)
    expect(lists()).to.deep.equal(['10.0.0.1:8080'])
    await world.agent.stop()
  })

  it('gives a new pod the weight and priority of its own Service, not those of a backup or a machine (A16)', async () => {
    const nodes = [
      { host: '192.0.2.1', port: 80, weight: 1, priority: 0 },
      { host: '10.0.0.1', port: 8080, weight: 100, priority: 10 }
    ]
    const [first, second] = [pod('web-1'), pod('web-2', { ips: ['10.0.0.2'] })]
    const { world } = await following(nodes, sliceOf('web', [first, second]))
    const value = world.apisix.value('upstreams', 'web')?.['nodes'] as JsonObject[]
    expect(value.find(({ host }) => host === '10.0.0.2')).to.include({ weight: 100, priority: 10 })
    await world.agent.stop()
  })

  it('lists one IPv6 address once, however it is spelled', async () => {
    const slice = { ...sliceOf('web', []), family: 'IPv6' as const }
    const read = toEndpointFact({
      metadata: {
        uid: 'u',
        namespace: 'shop',
        name: 'web-1',
        labels: { 'kubernetes.io/service-name': 'web' }
      },
      addressType: 'IPv6',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: [{ addresses: ['fd00:0:0::0007'] }]
    })
    if (!read) throw new Error('it is a slice')
    const { world, lists } = await following({ '[fd00::7]:8080': 1 }, slice, read)
    expect(lists()).to.deep.equal(['[fd00::7]:8080'])
    expect(world.apisix.writes()).to.equal(0)
    await world.agent.stop()
  })

  it('that can never fill is refused with an Event: an ExternalName Service, or slices of host names', async () => {
    const { world } = await following(
      {},
      { ...sliceOf('web', []), family: 'FQDN', endpoints: [byHand('db.example')] }
    )
    const alias = { ...service('alias', { upstream: 'alias' }), uid: 'alias', externalName: 'db.example' }
    world.service(alias)
    await world.pass(2000)
    expect(world.events).to.deep.equal([
      'web: upstreams/web: the EndpointSlices of the Service have host names, and only addresses are listed',
      'alias: apisix-drain.io/upstream: a Service of type ExternalName has no endpoints to list'
    ])
    await world.agent.stop()
  })
})
