import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { StatusReport } from '../../agent/doctor/status-report.ts'
import { until } from '../build/apisix.ts'
import type { TestPod } from '../build/pods.ts'
import { sideBySide } from '../build/side-by-side.ts'

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))

/** Runs `apisix-drain status` as a user does, in a separate process. */
const run = (...flags: string[]) => runCommand('status', ...flags)

function runCommand(...words: string[]) {
  const child = spawn(process.execPath, [MAIN, ...words], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const said = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()))
  const code = new Promise<number | null>(resolve => child.once('close', resolve))
  return { said, code }
}

async function status(...flags: string[]) {
  const { said, code } = run(...flags)
  return { code: await code, ...said }
}

describe('feature: apisix-drain status', () => {
  const config = { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' }
  const test = sideBySide({ gateways: 2, barrier: true, config })

  test('exits 0 if no answer is at risk; 1 if a gateway does not answer, and names it (D14)', async start => {
    const rig = await start()
    await rig.settled()
    const url = `http://127.0.0.1:${rig.agent.port}`
    let well = await status('--url', url)
    // On a busy machine, the first calls may time out, or show late gateways.
    await until('all is well', async () => well.code === 0 || (well = await status('--url', url)).code === 0)
    expect(well.err).to.equal('')
    expect(well.out).to.match(/^apisix\/apisix-1 +ready +barrier/m)

    const [, second] = rig.gateways
    await second!.partition({ barrier: 'refused', control: 'refused' })
    const report = async () => JSON.parse((await status('--url', url, '--json')).out) as StatusReport
    let bad = await report()
    await until('the gateway is missed', async () => (bad = await report()).level === 'bad')
    expect(bad).to.include({ level: 'bad', head: '1 of 2 gateways unreachable: rollouts wait.' })
    expect(bad.rest).to.contain(second!.name)
    expect((await status('--url', url)).code).to.equal(1)
  })

  test('is not red for a pod that nothing leads to and that ended while no gateway answered, unless it called its hook', async start => {
    const rig = await start({ gateways: 1, config })
    const pods = ['apisix-old', 'called', 'finished'].map(name => rig.pod(name, { graceSeconds: 60 }))
    const [plain, called, finished] = pods as [TestPod, TestPod, TestPod]
    rig.upstream('web', [rig.pod('web-1')])
    await rig.settled()
    const url = `http://127.0.0.1:${rig.agent.port}`
    const state = () => rig.agent.state()
    const over = async (pod: TestPod) => (await state()).past.find(({ uid }) => uid === pod.uid)

    // A pod whose whole end is seen in one round needs no drain.
    const begun = (pod: TestPod) =>
      until('the drain begins', async () => (await state()).drains.some(({ uid }) => uid === pod.uid))
    const [gateway] = rig.gateways
    await gateway!.partition({ barrier: 'refused', control: 'refused' })
    rig.end(plain)
    await begun(plain)
    rig.gone(plain)
    await until('the drain is over of the pod without a hook', async () => (await over(plain)) !== undefined)
    expect(await over(plain)).to.deep.include({ unlisted: true, holders: [] })
    expect((await over(plain))?.verdict).to.include({ kind: 'waiting' })
    // No listing is read for the pod of a finished Job, so none is newer than its end.
    const release = rig.admin.faults.inject({ fault: { kind: 'hang' } })
    rig.end(finished)
    await begun(finished)
    rig.kubernetes.store.patchStatus('pods', finished.namespace, finished.name, { phase: 'Succeeded' })
    rig.gone(finished)
    await until('the drain is over of the finished pod', async () => (await over(finished)) !== undefined)
    release()
    expect(await over(finished)).to.deep.include({ unlisted: true, holders: [] })
    await gateway!.partition({})
    let report: StatusReport | undefined
    await until('the gateway answers again', async () => {
      report = JSON.parse((await status('--url', url, '--json')).out) as StatusReport
      return report.level !== 'bad'
    })
    expect(report?.lastHour.level).to.equal('well')

    await gateway!.partition({ barrier: 'refused', control: 'refused' })
    const hook = rig.drain(called).catch(() => undefined)
    await until('its hook is held', async () => (await state()).drains.some(({ hooks }) => hooks > 0))
    rig.gone(called)
    await until(
      'the drain is over of the pod whose hook was held',
      async () => (await over(called)) !== undefined
    )
    await gateway!.partition({})
    expect((await over(called))?.unlisted).to.equal(false)
    await hook
  })

  test('exits 2 if no agent answers, if it has no page, and for one JSON object then too', async start => {
    const rig = await start({ config: { SERVE_DASHBOARD_ENABLED: 'false' } })
    // Takes a free port and closes it again, so that nothing listens on it.
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await once(server.close(), 'close')
    const away = await status('--url', `http://127.0.0.1:${port}`)
    expect(away).to.include({ code: 2, out: '' })
    expect(away.err).to.match(/^no agent answers at \S+: ECONNREFUSED\n {2}-> run it in the pod of the agent/)
    const off = await status('--json', '--url', `http://127.0.0.1:${rig.agent.port}`)
    expect(off).to.include({ code: 2, err: '' })
    expect(JSON.parse(off.out)).to.deep.equal({
      problem: `the agent at http://127.0.0.1:${rig.agent.port} shows no state`,
      change: 'set serve.dashboard.enabled'
    })
  })

  for (const command of ['doctor', 'status'])
    it(`${command} --json prints one object if the configuration is wrong`, async () => {
      const { said, code } = runCommand(command, '--json')
      expect(await code).to.equal(2)
      expect(said.err).to.equal('')
      expect((JSON.parse(said.out) as { problems: string[] }).problems[0]).to.match(
        /^no configuration is given: name its file/
      )
    })
})
