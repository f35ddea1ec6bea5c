import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { pair } from '../build/pair.ts'
import type { TestPod } from '../build/pods.ts'
import { sideBySide } from '../build/side-by-side.ts'
import { runHook } from './run.ts'

/** The real helper and the real agent; Kubernetes and gateways are stand-ins. */
describe('hook and agent', () => {
  const test = sideBySide({ barrier: true })

  const identity = ({ namespace, name, uid }: TestPod) => ({
    POD_NAME: name,
    POD_NAMESPACE: namespace,
    POD_UID: uid
  })

  test('returns when every gateway has confirmed', async start => {
    const rig = await start({ gateways: 2 })
    const [old] = await pair(rig)
    rig.end(old)
    const { code, stderr } = await runHook(['--url', `http://127.0.0.1:${rig.agent.port}`], identity(old))
    expect(stderr).to.match(/^apisix-drain-hook: drained, evidence barrier, held for \d\S*s: /)
    expect(code).to.equal(0)
  })

  test('uses no proxy, whatever the environment: a proxy would be mistaken for the pod', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    rig.end(old)
    const proxy = 'http://127.0.0.1:1'
    const env = { ...identity(old), http_proxy: proxy, HTTP_PROXY: proxy, ALL_PROXY: proxy }
    const { stderr } = await runHook(['--url', `http://127.0.0.1:${rig.agent.port}`], env)
    expect(stderr).to.contain('drained, evidence barrier')
  })

  test('reports that a pod stays, and the refusal for a pod that is gone', async start => {
    const rig = await start()
    const web = rig.pod('web-1')
    await rig.settled()
    const url = `http://127.0.0.1:${rig.agent.port}`
    const stays = await runHook(['--url', url, '--quiet', '30s', '--fallback', '200ms'], identity(web))
    expect(stays.stderr).to.contain('stays, evidence none')
    expect(stays.stderr).not.to.contain('quiet')
    const other = await runHook(['--url', url, '--fallback', '200ms'], { ...identity(web), POD_UID: 'old' })
    expect(other.stderr).to.contain('refused with 403 forbidden: ')
  })

  test('sleeps if the reserve uses up the grace, because nothing is proved', async start => {
    const rig = await start({ applyDelay: () => 2000, config: { DRAIN_RESERVE: '5s' }, barrier: false })
    const [old] = await pair(rig, { graceSeconds: 3 })
    rig.end(old)
    const args = ['--url', `http://127.0.0.1:${rig.agent.port}`, '--fallback', '1500ms']
    const { stderr, ms } = await runHook(args, identity(old))
    expect(stderr).to.match(/unproved, evidence none, .*; (sleeping|no sleep, \S+ have passed)/)
    expect(ms).to.be.at.least(1500)
  })

  test('moves to the next agent if its agent stops in the middle', async start => {
    const port = String(28_900 + (process.pid % 90))
    const rig = await start({ config: { SERVE_PORT: port } })
    const old = rig.pod('web-1')
    rig.upstream('web', [old])
    await rig.settled()
    rig.end(old)
    const first = rig.agent
    const waits = () => first.loop.held().length === 1
    const running = runHook(['--url', `http://127.0.0.1:${port}`, '--fallback', '20s'], identity(old))
    await until('the first agent holds the hook', waits)
    await first.close()
    await rig.readyAgent()
    rig.upstream('web', [old, rig.pod('web-2')])
    const { code, stderr } = await running
    expect(stderr).to.contain('drained, evidence barrier')
    expect(code).to.equal(0)
  })
})
