import { expect } from 'chai'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { startAgentProcess } from '../build/agent-process.ts'
import { until } from '../build/apisix.ts'
import { callHook } from '../build/hook.ts'
import { get } from '../build/load.ts'
import { startRig } from '../build/rig.ts'

/** A pause that the agent notices: longer than the gap that counts as an absence (`agent/start/start-sources.ts`). */
const NOTICED_MS = 2000

describe('feature: an agent that was away', () => {
  it('does not renew the seal of an address that another pod has by now', async () => {
    const rig = await startRig({
      barrier: true,
      agent: false,
      config: { APISIX_BARRIER_TTL: '3s', DRAIN_RESERVE: '1s' }
    })
    const agent = await startAgentProcess(rig)
    try {
      const [gateway] = rig.gateways as [Gateway]
      const puts: string[] = []
      gateway.barrierApi!.onAsk(({ method, body }) => {
        if (method !== 'PUT') return
        const { entries } = JSON.parse(body) as { entries: { uid: string }[] }
        puts.push(...entries.map(({ uid }) => uid))
      })
      const bars = (ip: string, port: number) => gateway.barrier?.entries.look(ip, port)
      const [old, other, last] = [rig.pod('web-1'), rig.pod('web-2'), rig.pod('web-3')]
      await rig.serve(other)
      rig.upstream('web', [old, other, last])
      await rig.applied()
      // A removal reads the object first. The pause begins while it waits for the answer.
      const path = '/apisix/admin/upstreams/web'
      rig.admin.faults.inject({ fault: { kind: 'slow', ms: 1000 }, method: 'GET', path, times: 1 })
      let isRead = false
      rig.admin.listener.server.on('request', one => (isRead ||= one.method === 'GET' && one.url === path))
      rig.end(old)
      await callHook({ port: agent.port, from: old.ip })
      expect(bars(old.ip, old.port)).to.equal('sealed')
      await until('a removal has begun', () => isRead)

      const said = agent.lines().length
      const pausedAt = performance.now()
      agent.pause()
      rig.gone(old)
      const next = rig.pod('web-4', { ip: old.ip })
      const backend = await rig.serve(next)
      rig.upstream('web', [next, other, last])
      await rig.applied()
      // The pause must be long enough for two things: the entry expires, and the agent notices its absence.
      await until(
        'the entry has expired in a pause that the agent notices',
        () => bars(next.ip, next.port) === 'free' && performance.now() - pausedAt > NOTICED_MS
      )
      const before = puts.length
      agent.resume()

      // The agent works on: it seals the next pod that ends, and answers its hook.
      rig.end(last)
      const { body } = await callHook({ port: agent.port, from: last.ip })
      expect(body).to.include({ result: 'drained', evidence: 'barrier' })
      await until('it said that it was away', () =>
        agent
          .lines()
          .slice(said)
          .some(({ msg }) => String(msg).startsWith('this process was away'))
      )
      expect(puts.slice(before)).not.to.include(old.uid)
      expect(puts.slice(before)).to.include(last.uid)
      expect(rig.nodes('upstreams/web'), 'what was begun before is not written any more').to.include(
        next.node
      )
      expect(bars(next.ip, next.port)).to.equal('free')
      const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => get(`${gateway.urls.proxy}/`)))
      expect(answers.map(({ status }) => status)).to.deep.equal(Array(6).fill(200))
      expect(backend.arrivals.length).to.be.above(0)
      expect(rig.violations()).to.deep.equal([])
    } finally {
      agent.resume()
      await agent.end('SIGKILL')
      await rig.close()
    }
  })
})
