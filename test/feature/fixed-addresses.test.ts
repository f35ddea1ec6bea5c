import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { arrayOf } from '../build/held-nodes.ts'
import { get } from '../build/load.ts'
import { sideBySide } from '../build/side-by-side.ts'

const DAEMON_SET = { kind: 'DaemonSet', name: 'web' }

describe('feature: pods whose successor has the same address', () => {
  const test = sideBySide({ barrier: false })

  test('without the plugin the upstream is not written either, since nobody would add the node again: hooks are refused', async start => {
    const rig = await start()
    const options = { hostNetwork: true, owner: DAEMON_SET }
    const pods = ['web-a', 'web-b', 'web-c'].map(name => rig.pod(name, options))
    const nodes = pods.map(({ ip, port }, i) => ({ host: ip, port, weight: i + 1, metadata: { rack: i } }))
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes })
    await rig.settled('web', 3)
    for (const pod of pods) {
      expect((await rig.drain(pod)).status).to.equal(503)
      rig.gone(pod)
      rig.pod(`${pod.name}-next`, { ...options, ip: pod.ip })
    }
    expect(rig.writes).to.deep.equal([])
  })

  for (const barrier of [false, true])
    test(`a removal whose read took long is not written: another pod has got the address meanwhile (${barrier ? 'a list, with' : 'a map, without'} the plugin)`, async start => {
      const rig = await start({ barrier })
      const [old, other, spare] = [rig.pod('web-1'), rig.pod('web-2'), rig.pod('spare')]
      rig.upstream('web', [old, other], barrier ? 'array' : 'map')
      rig.upstream('spare', [spare, other])
      await rig.settled()
      await until('the inventory has it', () =>
        ['web', 'spare'].every(id => rig.agent.nodes(`upstreams/${id}`) === 2)
      )
      const path = '/apisix/admin/upstreams/web'
      let [asked, answered] = [0, 0]
      rig.admin.listener.server.on('request', (request: IncomingMessage, answer: ServerResponse) => {
        if (request.url !== path) return
        asked++
        answer.on('finish', () => answered++)
      })
      rig.admin.faults.inject({ fault: { kind: 'slow', ms: 3000 }, path, times: 1 })
      rig.end(old)
      if (barrier) rig.gone(old)
      await until('the writer reads it', () => asked > 0)
      if (!barrier) rig.gone(old)
      const next = rig.pod('next', { ip: old.ip })
      await until('the agent knows the next pod', () => rig.agent.pod(next.ip)?.name === next.name)
      expect(answered).to.equal(0)
      await until('the writer has read it', () => answered > 0)
      // Whatever it would write, it writes before this.
      rig.end(spare)
      await until('another removal is written', () => rig.nodes('upstreams/spare').length === 1)
      expect(rig.writes).to.deep.equal(['PATCH /apisix/admin/upstreams/spare'])
    })

  test('with the plugin the upstream is not written at all, and the next pod gets its requests', async start => {
    const rig = await start({ barrier: true })
    const options = { hostNetwork: true, owner: DAEMON_SET }
    const pods = ['web-a', 'web-b', 'web-c'].map(name => rig.pod(name, options))
    const backends = await Promise.all(pods.map(pod => rig.serve(pod)))
    rig.put('upstreams', 'web', { type: 'roundrobin', nodes: arrayOf(pods) })
    rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    await rig.settled('web', 3)
    for (const [i, pod] of pods.entries()) {
      expect((await rig.drain(pod)).body).to.include({ result: 'drained', evidence: 'barrier' })
      await backends[i]?.close()
      rig.gone(pod)
      const next = await rig.serve(rig.pod(`${pod.name}-next`, { ...options, ip: pod.ip }))
      const proxy = rig.gateways[0]?.urls.proxy ?? ''
      await until(
        'the next pod has requests',
        () => (void get(`${proxy}/`).catch(() => {}), next.arrivals.length > 0)
      )
    }
    expect(rig.writes).to.deep.equal([])
    expect(rig.nodes('upstreams/web')).to.have.length(3)
  })
})
