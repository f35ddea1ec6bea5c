import { expect } from 'chai'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const RANGE = { SYNC_POD_RANGES: '127.0.0.0/8', GHOSTS_AFTER: '1s' }
const PAGE = { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' }
const REPAIR = { ...RANGE, GHOSTS_ACTION: 'repair' }

describe('feature: ghosts', () => {
  const test = sideBySide({ config: REPAIR })
  const owner = { labels: { 'managed-by': 'apisix-ingress-controller' } }

  test('a node whose address no pod has had for a while is reported with its writer, and left alone', async start => {
    const rig = await start({
      config: { ...RANGE, ...PAGE, GHOSTS_ACTION: 'report' }
    })
    const live = rig.pod('web-1')
    rig.service('web', [live])
    rig.put('upstreams', 'web', {
      type: 'roundrobin',
      ...owner,
      nodes: { [live.node]: 1, '127.9.9.9:80': 1 }
    })
    const ghost = () => rig.agent.lines.find(({ msg }) => msg === 'ghost')
    await until('it is told', () => ghost() !== undefined, 15_000)
    expect(ghost()).to.include({
      holder: 'upstreams/web',
      node: '127.9.9.9:80',
      writer: 'ingress controller 1.x (its label managed-by)'
    })
    expect(rig.writes).to.deep.equal([])
    const shown = async () => {
      const response = await fetch(`http://127.0.0.1:${rig.agent.port}/api/state`)
      const { holders } = (await response.json()) as Snapshot
      return holders.find(({ key }) => key === 'upstreams/web')?.ghosts.map(({ node }) => node)
    }
    expect(await shown(), 'on the dashboard').to.deep.equal(['127.9.9.9:80'])
  })

  test('repaired: all ghosts of a holder are removed in one write, and its other nodes stay', async start => {
    const rig = await start()
    const live = rig.pod('web-1')
    rig.service('web', [live])
    rig.put('upstreams', 'web', {
      type: 'roundrobin',
      nodes: [
        ...arrayOf([live]),
        { host: '127.9.9.8', port: 80, weight: 1 },
        { host: '127.9.9.9', port: 80, weight: 1 },
        { host: '192.0.2.1', port: 80, weight: 1 }
      ]
    })
    await until('they are out', () => rig.nodes('upstreams/web').length === 2, 15_000)
    expect(rig.nodes('upstreams/web'), 'a machine is no ghost').to.deep.equal([live.node, '192.0.2.1:80'])
    expect(rig.writes).to.deep.equal(['PATCH /apisix/admin/upstreams/web'])
  })

  test('the last node stays, even if it is a ghost', async start => {
    const rig = await start()
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { '127.9.9.8:80': 1, '127.9.9.9:80': 1 } })
    await until('one is out', () => rig.nodes('upstreams/web').length === 1, 15_000)
    const listing = rig.agent.readAt() ?? 0
    await until('it was listed again', () => (rig.agent.readAt() ?? 0) > listing, 10_000)
    await until('and again', () => (rig.agent.readAt() ?? 0) > listing + 1500, 10_000)
    expect(rig.nodes('upstreams/web')).to.have.length(1)
  })

  test('an address that a new pod has is no ghost', async start => {
    const rig = await start()
    const live = rig.pod('web-1')
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [live.node]: 1, '127.9.9.9:28080': 1 } })
    const next = rig.pod('web-2', { ip: '127.9.9.9' })
    await rig.settled()
    const listing = rig.agent.readAt() ?? 0
    await until('it was listed often', () => (rig.agent.readAt() ?? 0) > listing + 2500, 15_000)
    expect(rig.nodes('upstreams/web')).to.include(next.node)
    expect(rig.writes).to.deep.equal([])
  })

  /** Makes the only node of a holder a ghost: its pod ends, and a new pod replaces the pod. */
  const swapped = async (rig: Rig, old: TestPod) => {
    const next = rig.pod('web-2', { owner: { kind: 'ReplicaSet', name: 'web-2b' } })
    await rig.serve(next)
    rig.service('web', [old, next])
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [old.node]: 3 } })
    await rig.settled()
    rig.gone(old)
    rig.service('web', [next])
    await until('the next pod is listed', () => rig.nodes('upstreams/web').join() === next.node, 15_000)
    return next
  }

  test('repaired: the last node too, by one write that lists the pod that takes over', async start => {
    const rig = await start({ barrier: true })
    await swapped(rig, rig.pod('web-1', { owner: { kind: 'ReplicaSet', name: 'web-1a' } }))
    expect(rig.writes.filter(write => !write.startsWith('GET'))).to.deep.equal([
      'PATCH /apisix/admin/upstreams/web'
    ])
  })

  test('repaired, and listed again when the next pod of the workload has the address of the ghost', async start => {
    const rig = await start({ barrier: true })
    const owner = { kind: 'ReplicaSet', name: 'web-1a' }
    const old = rig.pod('web-1', { owner })
    const next = await swapped(rig, old)
    const back = rig.pod('web-3', { owner, ip: old.ip })
    rig.service('web', [next, back])
    await until('both are listed', () => rig.nodes('upstreams/web').length === 2, 15_000)
    expect(rig.nodes('upstreams/web')).to.have.members([old.node, next.node])
  })

  for (const kind of ['StatefulSet', 'DaemonSet'])
    test(`repaired by the next pod of the same role only, if the place leads to one pod of a ${kind}`, async start => {
      const rig = await start({ barrier: true })
      const one = (i: number, ready = true) =>
        rig.pod(`one-${i}`, { owner: { kind, name: 'one' }, host: `host-${i}`, ready })
      const [old, other] = [one(0), one(1)]
      rig.service('one', [old, other])
      rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [old.node]: 3 } })
      await rig.settled()
      rig.gone(old)
      const next = one(0, false)
      rig.service('one', [next, other])
      await until('it is a ghost', () => rig.agent.lines.some(({ msg }) => msg === 'ghost'), 15_000)
      const listing = rig.agent.readAt() ?? 0
      await until('it was listed often', () => (rig.agent.readAt() ?? 0) > listing + 2500, 15_000)
      expect(rig.nodes('upstreams/web')).to.deep.equal([old.node])
      rig.isReady(next, true)
      rig.service('one', [next, other])
      await until('the next pod is listed', () => rig.nodes('upstreams/web').join() === next.node, 15_000)
    })
})
