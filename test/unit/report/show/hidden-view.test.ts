import { expect } from 'chai'
import { createHolderIndex } from '../../../../agent/gateway/inventory/holder-index.ts'
import { createHiddenView } from '../../../../agent/report/show/build-snapshot.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { createServiceStore } from '../../../../agent/kubernetes/facts/service-store.ts'
import { createSliceStore } from '../../../../agent/kubernetes/facts/slice-store.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { pod } from '../../../build/pod.ts'

/** Makes cached pods and holders, and a clock by which a search takes `looksTake` ms. */
function rig(looksTake = 0) {
  const clock = manualClock()
  const [pods, slices, services] = [createPodStore(clock), createSliceStore(), createServiceStore()]
  const inventory = createHolderIndex()
  let readAt: number | undefined = 1
  let events = 0
  const part = { name: 'pods' as const, state: 'live' as const, synced: true, lastEventAt: 0, problem: '' }
  let looks = 0
  const cluster = {
    pods: pods.store,
    slices: slices.store,
    services: services.store,
    parts: () => [{ ...part, objects: 1, counters: { events, lists: 1, failures: 0, silences: 0 } }]
  }
  const counted = {
    ...inventory,
    readAt: () => readAt,
    holders: () => {
      looks += 1
      clock.advance(looksTake)
      return inventory.holders()
    }
  }
  const look = createHiddenView({ cluster, inventory: counted }, clock)
  return {
    clock,
    shown: () => look().map(({ holder, pods }) => `${holder} ${pods.join(' ')}`),
    look,
    looks: () => looks,
    unread: () => (readAt = undefined),
    set: (name: string, ip: string) => {
      pods.sink.set(pod(name, { ips: ['10.0.0.9'], hostIp: ip, hostPorts: [9000] }))
      events += 1
    },
    learn: (id: string, ...nodes: string[]) => {
      const value = { nodes: Object.fromEntries(nodes.map(node => [node, 1])) }
      inventory.learn({ resource: 'upstreams', id, value, revision: 0 }, clock.now())
    },
    forget: (id: string) => inventory.forget('upstreams', id, clock.now()),
    streamed: (id: string) =>
      inventory.replace(
        'stream_routes',
        [{ resource: 'stream_routes', id: 't', value: { upstream_id: id }, revision: 1 }],
        0
      )
  }
}

describe('the view of places that hide pods', () => {
  it('are searched again when a holder or a pod has changed, and are the same list until then', () => {
    const { shown, look, looks, learn, forget, set, streamed } = rig()
    expect(shown()).to.deep.equal([])
    learn('web', '10.9.0.1:9000')
    expect(shown()).to.deep.equal([])
    set('web-1', '10.9.0.1')
    expect(shown()).to.deep.equal(['upstreams/web shop/web-1'])
    const before = looks()
    expect(look()).to.equal(look())
    expect(looks()).to.equal(before)
    forget('web')
    expect(shown()).to.deep.equal([])
    learn('tcp', '10.0.0.9:80')
    expect(shown()).to.deep.equal([])
    streamed('tcp')
    expect(shown()).to.deep.equal(['upstreams/tcp shop/web-1'])
  })

  it('are not searched before there is a listing', () => {
    const { shown, looks, unread, learn, set } = rig()
    unread()
    learn('web', '10.9.0.1:9000')
    set('web-1', '10.9.0.1')
    expect([shown(), looks()]).to.deep.equal([[], 0])
  })

  it('wait a hundred times as long as a search took', () => {
    const { shown, looks, learn, set, clock } = rig(10)
    learn('web', '10.9.0.1:9000')
    shown()
    const before = looks()
    set('web-1', '10.9.0.1')
    expect([shown(), looks()]).to.deep.equal([[], before])
    clock.advance(1000)
    expect(shown()).to.deep.equal(['upstreams/web shop/web-1'])
  })
})
