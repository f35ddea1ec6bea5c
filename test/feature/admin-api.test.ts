import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import type { Fault } from '../../sandbox/apisix/faults.ts'
import { WRONG_KEY } from '../../sandbox/apisix/faults.ts'
import { until } from '../build/apisix.ts'
import { pair } from '../build/pair.ts'
import { SHORT } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** Hooks are answered 3 s after the deletion. On a busy machine the loop may be up to 10 s late (half of the reserve). */
const LATEST = { config: { DRAIN_RESERVE: '20s' }, graceSeconds: 23, answeredMs: 5000 }

const status = (code: number): Fault => ({ kind: 'status', status: code })
const HTML: Fault = {
  kind: 'status',
  status: 200,
  body: '<html><body>a login page</body></html>',
  contentType: 'text/html'
}

/** Each way in which the Admin API can fail, for all requests and for writes alone. */
const BROKEN: Readonly<Record<string, Fault>> = {
  'a wrong key (401)': WRONG_KEY,
  '404': status(404),
  '409': status(409),
  '412': status(412),
  '500': status(500),
  'a page of HTML': HTML,
  'no answer': { kind: 'hang' },
  'slow answers': { kind: 'slow', ms: 250 },
  'connections that close in the middle of a body': { kind: 'close-mid-body' },
  'connections that are reset': { kind: 'reset' },
  'writes that are applied and time out': { kind: 'applied-but-timed-out' }
}

describe('feature: a broken Admin API', () => {
  const test = sideBySide({ config: SHORT })

  for (const [what, fault] of Object.entries(BROKEN))
    test(`${what}: the hook is answered before its deadline, and the node is removed after the fault`, async start => {
      const rig = await start({ config: LATEST.config })
      const [old, fresh] = await pair(rig, LATEST)
      await until('the agent lists both', () => rig.agent.nodes('upstreams/web') === 2)
      const only = what.startsWith('writes') ? { method: 'PATCH' } : {}
      const lift = rig.admin.faults.inject({ fault, ...only })
      const { status, body, ranMs } = await rig.drain(old)
      expect(ranMs).to.be.below(LATEST.answeredMs)
      // If the agent's write succeeded, the gateways no longer show the node. Otherwise nothing is proved.
      const through = rig.nodes('upstreams/web').length === 1
      expect(body.result).to.be.oneOf(['drained', 'unproved'])
      expect(status).to.equal(body.result === 'unproved' ? 503 : 200)
      if (!through) expect(body).to.include({ result: 'unproved', evidence: 'none' })
      lift()
      await until('the node is out', () => rig.nodes('upstreams/web').length === 1)
      expect(rig.nodes('upstreams/web')).to.deep.equal([fresh.node])
    })

  test('refused holders do not delay the others', async start => {
    const rig = await start({ config: { APISIX_CONTROL_TIMEOUT: '8s' } })
    const [a, b, spare] = [rig.pod('a-1'), rig.pod('b-1'), rig.pod('spare')]
    rig.upstream('a', [a, spare])
    rig.upstream('b', [b, spare])
    await rig.settled('b', 2)
    rig.admin.faults.inject({ fault: { kind: 'hang' }, path: '/apisix/admin/upstreams/a' })
    rig.end(a)
    rig.end(b)
    let answered = false
    const held = rig.hook(a).finally(() => (answered = true))
    const second = await rig.hook(b)
    expect(answered).to.equal(false)
    rig.end(a, 1)
    const first = await held
    expect(second.body).to.include({ result: 'drained', evidence: 'observed' })
    expect(second.ranMs).to.be.below(1500)
    expect(first.body.result).to.equal('unproved')
    expect(first.body.holders?.map(({ key }) => key)).to.deep.equal(['upstreams/a'])
  })

  test('a wrong key causes one log line a minute for all parts, besides those of drains (D14, N12)', async start => {
    const rig = await start()
    const pods = ['a', 'b', 'c'].map(name => rig.pod(name, { graceSeconds: 300 }))
    for (const pod of pods) rig.upstream(pod.name, [pod, rig.pod(`${pod.name}-stays`)])
    await rig.settled()
    await until('it lists them', () => pods.every(({ name }) => rig.agent.nodes(`upstreams/${name}`) === 2))
    const before = rig.agent.lines.length
    const refused = { listings: 0, objects: 0 }
    rig.admin.listener.server.on('request', ({ url = '' }: IncomingMessage) => {
      if (url.includes('?page=')) refused.listings++
      if (/\/upstreams\/[abc]$/.test(url)) refused.objects++
    })
    rig.admin.faults.inject({ fault: status(401), path: '/apisix/admin/' })
    const from = Date.now()
    for (const pod of pods) rig.end(pod)
    await until(
      'listings and removals were refused often',
      () => refused.listings >= 50 && refused.objects >= 6
    )
    const lines = rig.agent.lines.slice(before)
    const about = lines.filter(
      ({ level, part }) => level !== 'debug' && !['drain', 'events'].includes(String(part))
    )
    const minutes = Math.ceil((Date.now() - from) / 60_000)
    expect(about.length, JSON.stringify(about)).to.be.within(1, minutes)
    for (const line of about) expect(line).to.include({ level: 'error', part: 'apisix' })
    expect(JSON.stringify(about[0])).to.contain('apisix.admin.keyFile').and.not.contain('secret')
  })
})
