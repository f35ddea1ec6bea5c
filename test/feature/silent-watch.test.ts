import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { pair } from '../build/pair.ts'
import { sideBySide, type Start } from '../build/side-by-side.ts'

const RANGE = { SYNC_POD_RANGES: '127.0.0.0/8' }
const LEFT_OVER = '127.9.9.9:28080'

describe('feature: the watch falls silent after the ack', () => {
  const test = sideBySide({ barrier: true })

  test('a reused address belongs to the new pod: its node stays, its entry is lifted', async start => {
    const rig = await start()
    const [old, other] = await pair(rig)
    expect((await rig.drain(old)).body).to.include({ evidence: 'barrier' })
    await until('the node is out', () => rig.nodes('upstreams/web').length === 1)

    rig.kubernetes.faults.muteWatches()
    rig.gone(old)
    const next = rig.pod('web-3', { ip: old.ip })
    rig.upstream('web', [next, other])
    // The guard lists the holders, finds the address again, and asks which pod has it.
    await rig.entryIs('free', next)
    expect(rig.nodes('upstreams/web').toSorted()).to.deep.equal([next.node, other.node].toSorted())
    expect(rig.violations()).to.deep.equal([])
  })
})

describe('feature: the watch is silent about a pod that its owner has listed', () => {
  const test = sideBySide()

  /** Starts a rig with one pod behind a Service that `sync` follows. */
  const synced = async (start: Start) => {
    const rig = await start({ config: { ...RANGE, SYNC_ALLOW: 'shop/*' } })
    const first = rig.pod('web-0')
    rig.upstream('web', [])
    rig.service('web', [first])
    rig.kubernetes.store.modify('services', 'shop', 'web', service => ({
      ...service,
      metadata: {
        ...service.metadata,
        annotations: { 'apisix-drain.io/upstream': 'web' }
      }
    }))
    await until('it is synced', () => rig.nodes('upstreams/web').join() === first.node)
    return { rig, first }
  }

  test('sync reads the slices of the Service before it removes a node', async start => {
    const { rig, first } = await synced(start)
    rig.kubernetes.faults.muteWatches()
    const next = rig.pod('web-1')
    rig.service('web', [first, next])
    // The upstream as a previous leader wrote it: with a node that should be gone.
    rig.put('upstreams', 'web', {
      type: 'roundrobin',
      nodes: { [first.node]: 1, [next.node]: 1, [LEFT_OVER]: 1 }
    })
    await until('what is left over is out', () => !rig.nodes('upstreams/web').includes(LEFT_OVER))
    expect(rig.nodes('upstreams/web').toSorted()).to.deep.equal([first.node, next.node].toSorted())
  })

  test('sync writes nothing while the API server does not answer, and then adds the nodes that it missed', async start => {
    const { rig, first } = await synced(start)
    await wait(150) // an answer of the API server counts for 100 ms
    const undo = rig.kubernetes.faults.answer(500, { watch: false })
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: { [first.node]: 1, [LEFT_OVER]: 1 } })
    const next = rig.pod('web-1')
    rig.service('web', [first, next])
    const listing = rig.agent.readAt() ?? 0
    await until('it was listed again', () => (rig.agent.readAt() ?? 0) > listing)
    expect(rig.nodes('upstreams/web').join()).to.equal([first.node, LEFT_OVER].join())
    undo()
    await until('the new pod is in', () => rig.nodes('upstreams/web').includes(next.node))
  })
})
