import { expect } from 'chai'
import * as fc from 'fast-check'
import { podObject } from './objects.ts'
import {
  isDialable,
  isLocal,
  gatewayPodReader,
  toGatewayPod,
  createGatewayStore
} from '../../../../agent/kubernetes/facts/gateway-store.ts'

describe('addresses at which a gateway may be called', () => {
  for (const address of '10.0.0.1 192.168.7.7 172.16.0.9 100.64.0.1 203.0.113.9 fd00::1 2001:db8::1'.split(
    ' '
  ))
    it(`${address} is called`, () => expect(isDialable(address, false)).to.equal(true))

  const special =
    '169.254.169.254 169.254.170.2 fe80::1 fd00:ec2::254 0.0.0.0 255.255.255.255 224.0.0.1 ff02::1 :: fd00::1%eth0'
  const mapped = '::ffff:169.254.169.254 ::ffff:a9fe:a9fe 0:0:0:0:0:ffff:a9fe:a9fe'
  const noAddress =
    'metadata.google.internal localhost 10.0.0.1:9180 10.0.0.1/x 10.0.0.1@evil.example 0x7f000001 2130706433 010.0.0.1 10.1'
  const broken = ['', ' 10.0.0.1', '10.0.0.1\r\nHost: x']
  for (const address of [...`${special} ${mapped} ${noAddress}`.split(' '), ...broken])
    it(`${JSON.stringify(address)} is never called`, () =>
      expect([isDialable(address, true), isDialable(address, false)]).to.deep.equal([false, false]))

  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    it(`${address} is called only if the whole cluster is on this machine`, () => {
      expect([isDialable(address, false), isDialable(address, true)]).to.deep.equal([false, true])
    })

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
