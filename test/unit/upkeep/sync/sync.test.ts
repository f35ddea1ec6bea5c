import { expect } from 'chai'
import type { Endpoint, EndpointFact } from '../../../../agent/rules/drain/facts.ts'
import { readNodes } from '../../../../agent/gateway/apisix/nodes.ts'
import type { JsonObject } from '../../../../sandbox/apisix/json.ts'
import { pod } from '../../../build/pod.ts'
import { service, sliceOf, syncWorld } from '../../../build/sync-world.ts'

describe('an upstream that follows a Service', () => {
  /** Starts an agent whose upstream `web` has these nodes and follows the Service `web`, which has these slices. */
  async function following(nodes: JsonObject | undefined, ...slices: readonly EndpointFact[]) {
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
})
