import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { createBarrierClient } from '../../agent/gateway/apisix/barrier-api.ts'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import { get } from '../build/load.ts'
import { ownWay } from '../build/own-way.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: two agents that share nothing', () => {
  const test = sideBySide({ gateways: 2 })

  for (const barrier of [false, true]) {
    const evidence = barrier ? 'barrier' : 'observed'
    test(`both answer any hook, and neither undoes the other's work (${evidence})`, async start => {
      const rig = await start({ barrier })
      const first = rig.agent
      const second = await rig.readyAgent()
      const old = Array.from({ length: 8 }, (_, i) => rig.pod(`old-${i}`))
      const fresh = [rig.pod('new-0'), rig.pod('new-1')]
      rig.put('upstreams', 'map', { nodes: Object.fromEntries([...old, ...fresh].map(pod => [pod.node, 1])) })
      rig.upstream('list', [...old, ...fresh])
      await rig.settled()
      await until('both list all', () => [first, second].every(agent => agent.nodes('upstreams/list') === 10))

      for (const pod of old) rig.end(pod)
      const answers = await Promise.all(
        old.map((pod, i) => callHook({ port: (i % 2 === 0 ? first : second).port, from: pod.ip }))
      )
      for (const { body } of answers) expect(body).to.include({ evidence })
      await until('no holder lists an ending pod', () =>
        ['upstreams/map', 'upstreams/list'].every(key => rig.nodes(key).length === fresh.length)
      )
      expect(rig.nodes('upstreams/map').toSorted()).to.deep.equal(fresh.map(pod => pod.node).toSorted())
    })
  }

  /** Longer than the time after which the knowledge of a watch counts as too old (`agent/round/ownership.ts`). */
  const BLIND_MS = 11_000

  for (const [who, agents] of [
    ['one of two agents', 2],
    ['the only agent', 1]
  ] as const)
    test(`${who} loses its API server while a gone pod is listed: no request fails`, async start => {
      const rig = await start({ barrier: true, agent: false })
      const web = (name: string) => rig.pod(name, { owner: { kind: 'ReplicaSet', name: 'web-1a' } })
      const [old, next] = [web('web-1'), web('web-2')]
      const backend = await rig.serve(old)
      await rig.serve(next)
      rig.service('web', [old, next])
      // The owner is stuck: it never lists another pod.
      rig.upstream('web', [old])
      const way = await ownWay(rig)
      try {
        const blind = await rig.readyAgent(way.settings)
        const all = agents === 2 ? [blind, await rig.readyAgent()] : [blind]
        await rig.settled()
        rig.end(old)
        for (const agent of all)
          expect((await rig.hook(old, '', undefined, agent)).body).to.include({ evidence: 'barrier' })
        await backend.close()
        rig.gone(old)
        rig.service('web', [next])
        const isGone = () => all.every(agent => agent.loop.drains().values().next().value?.phase === 'gone')
        await until('all know that it is gone', isGone)

        const load = rig.load(50)
        const mend = await way.cut()
        await wait(BLIND_MS)
        expect(load.result.failures).to.deep.equal([])
        await mend()
        await until('it sees again', () => blind.loop.vouchForEntries().ok)
        await wait(1000)
        const { failures, by } = await load.stop()
        expect(failures).to.deep.equal([])
        expect(Object.keys(by)).to.deep.equal(['web-2'])
      } finally {
        await way.close()
      }
    })

  test('one takes back a successor that the other has named, once its address is another pod’s', async start => {
    const rig = await start({ barrier: true })
    const workload = { owner: { kind: 'ReplicaSet', name: 'web-1a' } }
    const [old, next] = [rig.pod('web-1', workload), rig.pod('web-2', workload)] as const
    const last = rig.pod('web-3', workload)
    await rig.serve(next)
    rig.service('web', [old, next])
    rig.upstream('web', [old])
    await rig.settled()
    const told = new Set<unknown>()
    for (const { barrierApi } of rig.gateways)
      barrierApi!.onAsk(({ body }) => body.includes('"answer"') && told.add(barrierApi))
    expect((await rig.drain(old)).body).to.include({ evidence: 'barrier' })
    const named = () =>
      rig.gateways.map(({ barrier }) =>
        barrier!.entries.ofUid(old.uid)[0]?.successors?.[old.port]?.toSorted().join()
      )
    await until('the last put names the successor, and how the hook was answered', () =>
      named().every(nodes => nodes === next.node && told.size === 2)
    )

    // As an agent does that has lost its API server meanwhile: this one never names the pod itself.
    const { uid, ip } = old
    const successors = { [old.port]: [next.node, last.node] }
    const name = async ({ urls, barrierApi }: (typeof rig.gateways)[number]) => {
      const { port } = barrierApi!.listener
      const api = { port, scheme: 'http' as const, token: () => rig.barrierToken, timeoutMs: 5000 }
      const client = createBarrierClient(api)
      await client.at(new URL(urls.proxy).hostname).put([{ uid, ip, state: 'sealed', ttl: 60, successors }])
      client.close()
    }
    await Promise.all(rig.gateways.map(name))
    const both = [next.node, last.node].toSorted().join()
    expect(named()).to.deep.equal([both, both])
    rig.gone(last)
    rig.pod('bank-1', { namespace: 'bank', ip: last.ip, owner: { kind: 'ReplicaSet', name: 'bank-1a' } })
    await until('only the other one is named', () => named().every(nodes => nodes === next.node))
  })

  describe('of which one lags, because its watch is silent', () => {
    const workload = { owner: { kind: 'ReplicaSet', name: 'web-1a' } }
    /** Both agents hold the entry of a pod that is gone, and that a stuck owner lists. Then one of them hears nothing more. */
    const lagging = async (rig: Rig, successors: readonly string[]) => {
      const way = await ownWay(rig)
      const late = await rig.startAgent(way.settings)
      const all = [late, await rig.startAgent()]
      const old = rig.pod('web-1', workload)
      const others = successors.map(name => rig.pod(name, workload))
      for (const pod of others) await rig.serve(pod)
      rig.service('web', [old, ...others])
      rig.upstream('web', [old])
      await until('all are ready', () => all.every(agent => agent.missing().length === 0))
      await rig.settled()
      rig.end(old)
      for (const agent of all)
        expect((await rig.hook(old, '', undefined, agent)).body).to.include({ evidence: 'barrier' })
      rig.gone(old)
      rig.service('web', others)
      const isGone = () => all.every(agent => agent.loop.drains().get(old.uid as never)?.phase === 'gone')
      await until('both know that it is gone', isGone)
      const goOn = way.hold()
      const end = async () => {
        goOn()
        await way.close()
      }
      return { old, others, late, end }
    }
    /** A pod of another namespace gets this address, and is listed for its own paths. */
    const stranger = async (rig: Rig, ip: string) => {
      const bank = rig.pod('bank-1', {
        namespace: 'bank',
        ip,
        owner: { kind: 'ReplicaSet', name: 'bank-1a' }
      })
      rig.put('upstreams', 'bank', { type: 'roundrobin', nodes: { [bank.node]: 1 } })
      rig.put('routes', 'bank', { uri: '/bank/*', upstream_id: 'bank' })
      await rig.applied()
      return bank
    }
    /** Sends requests for a while, longer than an agent takes to put again what it misses, or to renew it. */
    const answersFor = async (rig: Rig, path: string) => {
      const answers = new Set<string>()
      for (const from = performance.now(); performance.now() - from < 3000; await wait(10))
        answers.add((await get(`${rig.gateways[0]!.urls.proxy}${path}`)).body)
      return [...answers]
    }

    test('it does not put the entry again whose address is another pod’s', async start => {
      const rig = await start({ barrier: true, agent: false })
      const { old, late, end } = await lagging(rig, ['web-2'])
      try {
        const bank = await stranger(rig, old.ip)
        await rig.serve(bank)
        const isFree = () => rig.gateways.every(one => one.barrier!.entries.ofUid(old.uid).length === 0)
        await until('the entry is removed', isFree)
        expect(await answersFor(rig, '/bank/')).to.deep.equal(['bank-1'])
        expect(late.loop.drains().get(old.uid as never)?.phase, 'it still lags').to.equal('gone')
      } finally {
        await end()
      }
    })

    test('it does not name the successor again whose address is another pod’s', async start => {
      const rig = await start({ barrier: true, agent: false, config: { APISIX_BARRIER_TTL: '3s' } })
      const { old, others, late, end } = await lagging(rig, ['web-2', 'web-3'])
      try {
        const [next, last] = others as [TestPod, TestPod]
        rig.gone(next)
        rig.service('web', [last])
        await stranger(rig, next.ip)
        const named = () =>
          rig.gateways.flatMap(
            ({ barrier }) => barrier!.entries.ofUid(old.uid)[0]?.successors?.[old.port] ?? []
          )
        const isLeft = () => named().length === 2 && named().every(address => address === last.node)
        await until('only the other one is named', isLeft)
        expect(await answersFor(rig, '/')).to.deep.equal(['web-3'])
        expect(late.pod(next.ip)?.name, 'it still lags').to.equal('web-2')
      } finally {
        await end()
      }
    })
  })
})
