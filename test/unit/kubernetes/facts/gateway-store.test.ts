import { expect } from 'chai'
import * as fc from 'fast-check'
import { podObject } from './objects.ts'
import {
  isLocal,
  gatewayPodReader,
  toGatewayPod,
  createGatewayStore
} from '../../../../agent/kubernetes/facts/gateway-store.ts'

describe('addresses at which a gateway may be called', () => {
  it('detects a cluster on this machine by its API server', () => {
    for (const origin of ['https://127.0.0.1:6443', 'https://[::1]:6443', 'http://localhost:8001'])
      expect(isLocal(origin), origin).to.equal(true)
    for (const origin of ['https://10.96.0.1', 'https://[fd00::1]', 'https://localhost.example:6443'])
      expect(isLocal(origin), origin).to.equal(false)
  })

  it('ignores a pod whose status names an address outside, and waits for a pod without an address', () => {
    const read = gatewayPodReader(false)
    const pod = (ip: string | undefined) => ({
      metadata: { uid: 'u', name: 'apisix-0', namespace: 'apisix' },
      status: { phase: 'Running', ...(ip !== undefined && { podIP: ip }) }
    })
    expect(read(pod('169.254.169.254'))).to.equal(undefined)
    expect(read(pod('127.0.0.1'))).to.equal(undefined)
    expect(read(pod('10.0.0.7'))?.gateway.ip).to.equal('10.0.0.7')
    expect(read(pod(undefined))?.gateway.ip).to.equal('')
  })
})

const gateway = (name: string, differs: Parameters<typeof podObject>[1] = {}) =>
  toGatewayPod(podObject(name, differs))!

describe('watch: gateways', () => {
  it('are pods with an address, a host, and a name that no other gateway has', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    expect(sink.set(gateway('apisix-1'))).to.equal(true)
    expect(store.list()).to.deep.equal([
      {
        id: 'uid-apisix-1',
        name: 'shop/apisix-1',
        ip: '10.0.0.1',
        ready: true,
        terminating: false,
        host: 'host-1'
      }
    ])
    expect(sink.set(gateway('apisix-1', { metadata: { resourceVersion: '11' } }))).to.equal(false)
  })

  it('stay listed while they may serve: unready, Terminating, crashing', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    sink.set(gateway('a', { status: { conditions: [] } }))
    sink.set(gateway('b', { metadata: { deletionTimestamp: '2026-11-21T10:00:30Z' } }))
    sink.set(gateway('c', { status: { phase: 'Unknown', conditions: [] } }))
    expect(store.list().map(g => [g.name, g.ready, g.terminating])).to.deep.equal([
      ['shop/a', false, false],
      ['shop/b', true, true],
      ['shop/c', false, false]
    ])
  })

  it('leave the list only when their containers have ended', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    sink.set(gateway('a'))
    sink.set(gateway('b'))
    expect(sink.set(gateway('a', { status: { phase: 'Failed' } }))).to.equal(true)
    expect(store.list().map(g => g.name)).to.deep.equal(['shop/b'])
    expect(sink.gone('uid-a', undefined)).to.equal(true)
    expect(sink.gone('uid-b', gateway('b', { status: { phase: 'Succeeded' } }))).to.equal(true)
    expect(sink.gone('uid-b', undefined)).to.equal(false)
    expect(store.list()).to.deep.equal([])
  })

  it('that can route no request leave the list until their pods change', () => {
    let now = 1000
    const { store, sink } = createGatewayStore(() => now++)
    const state = (one: object) => ({ status: { conditions: [], containerStatuses: [{ state: one }] } })
    sink.set(gateway('a', state({ waiting: { reason: 'CrashLoopBackOff' } })))
    const shown = () => store.list().map(({ stopped, unreadyAt }) => [stopped, unreadyAt])
    expect(shown()).to.deep.equal([[true, 1000]])
    store.ended('uid-a')
    expect(shown()).to.deep.equal([])
    sink.set(gateway('a', state({ running: {} })))
    expect(shown()).to.deep.equal([[undefined, 1000]])
    sink.set(gateway('a'))
    expect(shown()).to.deep.equal([[undefined, undefined]])
  })

  it('that vanish stay listed as Terminating until they are reported to have ended', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    const other = { status: { podIP: '10.0.0.2', podIPs: [{ ip: '10.0.0.2' }] } }
    sink.set(gateway('a'))
    sink.set(gateway('b', other))
    sink.gone('uid-a', gateway('a'))
    sink.gone('uid-b', undefined)
    const shown = store.list().map(g => [g.name, g.ready, g.terminating, g.vanishedAt])
    expect(shown).to.deep.equal([
      ['shop/a', false, true, 1000],
      ['shop/b', false, true, 1000]
    ])
    store.ended('uid-a')
    expect(store.list().map(g => g.name)).to.deep.equal(['shop/b'])
    // The pod of gateway `b` gets its label back. After that, `ended` must not remove the gateway.
    sink.set(gateway('b', other))
    store.ended('uid-b')
    expect(store.list().map(g => [g.name, g.ready, g.vanishedAt])).to.deep.equal([
      ['shop/b', true, undefined]
    ])
  })

  it('that vanish are no longer called if another gateway has their address', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    sink.set(gateway('a'))
    sink.gone('uid-a', undefined)
    sink.set(gateway('c'))
    expect(store.list().map(g => g.name)).to.deep.equal(['shop/c'])
    sink.gone('uid-c', gateway('c', { status: { phase: 'Failed' } }))
    expect(store.list()).to.deep.equal([])
  })

  it('mapping never throws', () => {
    fc.assert(fc.property(fc.anything(), object => void toGatewayPod(object)))
    expect(toGatewayPod({ metadata: { name: 'x' } })).to.equal(undefined)
  })
})
