import { expect } from 'chai'
import type { EndpointFact, PodFact } from '../../../agent/rules/drain/facts.ts'
import { toEndpointFact } from '../../../agent/kubernetes/facts/slice-store.ts'
import { readNodes } from '../../../agent/gateway/apisix/holders.ts'
import type { JsonObject } from '../../../sandbox/apisix/json.ts'
import { pod, terminating } from '../../build/pod.ts'
import { endpoint, sliceOf } from '../../build/service.ts'
import { service, syncWorld } from '../../build/sync-world.ts'
import type { Drain } from '../../../agent/rules/drain/drain.ts'
import { begin } from '../../../agent/rules/drain/step.ts'
import { createStillEnding } from '../../../agent/upkeep/upkeep.ts'
import { DRAIN_SETTINGS, proven, seen } from '../../build/drain.ts'

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
  const byHand = (address: string) => endpoint(undefined, { address })

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

const old = pod('old', terminating(0))
const draining = begin(seen(old), 0, DRAIN_SETTINGS) as Drain
const acked = { ...draining, phase: 'proven', at: 10, verdict: proven() } as Drain

interface Server {
  /** The pod that has the name of the ending pod now; default: none. */
  readonly itself?: PodFact
  /** The pods that have the address; `undefined`: the API server does not answer this question. */
  readonly owners: readonly PodFact[] | undefined
  /** During the question, the watch reports that another pod has the address. */
  readonly overtaken?: boolean
  /** This process was paused, and its watch has not caught up since. */
  readonly away?: boolean
}

/** Asks about the address of `drain`. `server` has the API server's answers; `undefined`: the API server does not answer. */
function ask(drain: Drain | undefined, server: Server | undefined, isEnding = true) {
  const asked: string[] = []
  const doubts: string[] = []
  const stillEnding = createStillEnding({
    drains: {
      isEnding: () => isEnding,
      current: () => new Map(drain ? [[drain.uid, drain]] : [])
    },
    cluster: { verifyWatch: part => doubts.push(part), podsAssuredAt: () => 10 },
    resumedAt: () => (server?.away ? 20 : -Infinity),
    asking: {
      async pod({ name }) {
        asked.push(name)
        return server && { pod: server.itself }
      },
      async ownersOf(ip) {
        asked.push(ip)
        if (server?.overtaken) isEnding = false
        return server?.owners
      }
    }
  })
  return { answer: stillEnding(old.uid, '10.0.0.1:8080'), asked, doubts }
}

describe('still ending', () => {
  it('makes no call about a pod that was seen to be deleted, before its hook is answered: the pod exists', async () => {
    const { answer, asked } = ask(draining, { owners: [] })
    expect(await answer).to.equal(true)
    expect(asked).to.deep.equal([])
  })

  it('makes the call after an absence of this process: the pod may be gone, and its address another pod’s', async () => {
    const next = pod('next', { ips: old.ips })
    const { answer, asked } = ask(draining, { owners: [next], away: true })
    expect(await answer).to.equal(false)
    expect(asked).to.deep.equal(['old', '10.0.0.1'])
  })

  it('makes no call about a finished drain, or an address that the watch shows at another pod', async () => {
    expect(await ask(undefined, { owners: [] }).answer).to.equal(false)
    expect(await ask(acked, { owners: [] }, false).answer).to.equal(false)
  })

  it('reads only the pod while it exists: finding the pod of an address reads every pod', async () => {
    const { answer, asked } = ask(acked, { itself: old, owners: [pod('next')] })
    expect(await answer).to.equal(true)
    expect(asked).to.deep.equal(['old'])
  })

  it('guards the address of an ended or removed pod until another pod has it', async () => {
    const ended = { ...old, phase: 'Failed' } as const
    const job = pod('job', { phase: 'Succeeded' })
    for (const itself of [undefined, ended, { ...old, uid: pod('next').uid }]) {
      for (const owners of [[], [old], [job], [old, pod('next', terminating(5))]]) {
        const { answer, asked } = ask(acked, { ...(itself && { itself }), owners })
        expect(await answer).to.equal(true)
        expect(asked).to.deep.equal(['old', '10.0.0.1'])
      }
    }
  })

  it('spares a new pod that a silent watch has not shown, and verifies the watch', async () => {
    const { answer, doubts } = ask(acked, { owners: [pod('next')] })
    expect(await answer).to.equal(false)
    expect(doubts).to.deep.equal(['pods'])
  })

  it('leaves the node alone while the API server is unreachable', async () => {
    expect(await ask(acked, undefined).answer).to.equal(undefined)
    expect(await ask(acked, { owners: undefined }).answer).to.equal(undefined)
  })

  it('follows the watch if it reported a change during the call', async () => {
    expect(await ask(acked, { owners: [], overtaken: true }).answer).to.equal(false)
  })

  it('reads the pod itself if only its hook shows its end, and waits for its deletion: nobody would add the node again', async () => {
    const facts = seen(pod('old'), { calls: [{ container: undefined, run: 'app=1', at: 0 }] })
    const hinted = begin(facts, 0, DRAIN_SETTINGS) as Drain
    const said = (itself: PodFact) => ask(hinted, { itself, owners: [] }).answer
    expect(await said(pod('old', terminating(0)))).to.equal(true)
    expect(await said(pod('old'))).to.equal(undefined)
    expect(await ask(hinted, { owners: [] }).answer).to.equal(true)
    expect(await ask(hinted, undefined).answer).to.equal(undefined)
  })

  it('a host’s address belongs to another pod if that pod has the port', async () => {
    const host = { hostNetwork: true, containerPorts: [8080] }
    const gone = { ...acked, pod: pod('old', host) }
    expect(await ask(gone, { owners: [pod('next', host)] }).answer).to.equal(false)
    const beside = pod('proxy', { ...host, containerPorts: [10_256] })
    expect(await ask(gone, { owners: [beside] }).answer).to.equal(true)
  })
})
