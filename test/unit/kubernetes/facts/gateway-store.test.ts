import { expect } from 'chai'
import * as fc from 'fast-check'
import {
  staticGateway,
  toGatewayPod,
  createGatewayStore
} from '../../../../agent/kubernetes/facts/gateway-store.ts'
import { podObject } from './objects.ts'

const gateway = (name: string, differs: Parameters<typeof podObject>[1] = {}) =>
  toGatewayPod(podObject(name, differs))!

describe('watch: gateways', () => {
  it('are pods with an address, a name and a host', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    expect(sink.set(gateway('apisix-1'))).to.equal(true)
    expect(store.list()).to.deep.equal([
      {
        id: 'uid-apisix-1',
        name: 'apisix-1',
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
      ['a', false, false],
      ['b', true, true],
      ['c', false, false]
    ])
  })

  it('leave the list only when their containers have ended', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    sink.set(gateway('a'))
    sink.set(gateway('b'))
    expect(sink.set(gateway('a', { status: { phase: 'Failed' } }))).to.equal(true)
    expect(store.list().map(g => g.name)).to.deep.equal(['b'])
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
      ['a', false, true, 1000],
      ['b', false, true, 1000]
    ])
    store.ended('uid-a')
    expect(store.list().map(g => g.name)).to.deep.equal(['b'])
    // The pod of gateway `b` gets its label back. After that, `ended` must not remove the gateway.
    sink.set(gateway('b', other))
    store.ended('uid-b')
    expect(store.list().map(g => [g.name, g.ready, g.vanishedAt])).to.deep.equal([['b', true, undefined]])
  })

  it('that vanish are no longer called if another gateway has their address', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    sink.set(gateway('a'))
    sink.gone('uid-a', undefined)
    sink.set(gateway('c'))
    expect(store.list().map(g => g.name)).to.deep.equal(['c'])
    sink.gone('uid-c', gateway('c', { status: { phase: 'Failed' } }))
    expect(store.list()).to.deep.equal([])
  })

  it('without an address are not listed', () => {
    const { store, sink } = createGatewayStore(() => 1000)
    sink.set(gateway('a', { status: { phase: 'Pending', podIP: undefined, podIPs: undefined } }))
    expect(store.list()).to.deep.equal([])
    sink.set(gateway('a'))
    expect(store.list()).to.have.lengthOf(1)
  })

  it('listed by hand always count', () => {
    const { store } = createGatewayStore(() => 1000, [staticGateway({ name: 'edge', host: 'gw.example' })])
    expect(store.list()).to.deep.equal([
      {
        id: 'edge',
        name: 'edge',
        ip: 'gw.example',
        ready: true,
        terminating: false,
        host: undefined,
        byHand: true
      }
    ])
  })

  it('mapping never throws', () => {
    fc.assert(fc.property(fc.anything(), object => void toGatewayPod(object)))
    expect(toGatewayPod({ metadata: { name: 'x' } })).to.equal(undefined)
  })
})
