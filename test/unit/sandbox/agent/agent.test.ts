import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { schema } from '../../../../agent/config/schema/schema.ts'
import { startAgent, type AgentOptions } from '../../../../sandbox/agent.ts'
import { createAddresses } from '../../../../sandbox/kubelet/addresses.ts'
import { alive, eventually } from '../kubelet/harness.ts'

const READY = `
import { createServer } from 'node:http'
createServer((request, response) => response.end('ok')).listen(Number(process.env.PORT ?? 8080), process.argv[4])
`

describe('sandbox: starting the agent', () => {
  let directory: string
  beforeEach(async () => (directory = await mkdtemp(join(tmpdir(), 'apisix-drain-test-'))))
  afterEach(() => rm(directory, { recursive: true }))

  const options = (host: string): AgentOptions => ({
    directory,
    kubernetes: { kubeconfig: '/some/kubeconfig' },
    admin: { url: 'http://127.0.0.1:9180', key: 'the-key' },
    controlPort: 9090,
    barrier: { port: 9092, token: 'the-token' },
    gatewayNamespace: 'apisix',
    host,
    port: 8080
  })

  /** Starts a program with this source instead of the agent. */
  async function start(source: string, host = createAddresses().allocate()) {
    const main = join(directory, 'fake-agent.mjs')
    await writeFile(main, source.replace('process.argv[4]', JSON.stringify(host)))
    return await startAgent({ ...options(host), main })
  }
  const problem = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => 'it started',
      (error: unknown) => String(error)
    )

  it('waits until it is ready, and ends it', async () => {
    const agent = await start(READY)
    expect(alive(agent.pid)).to.equal(true)
    expect((await fetch(`${agent.url}/readyz`)).ok).to.equal(true)
    await agent.close()
    expect(alive(agent.pid)).to.equal(false)
  })

  it('gives it a configuration that its schema accepts, and each key in its own file', async () => {
    const agent = await start(READY)
    await agent.close()
    const text = await readFile(join(directory, 'agent.yaml'), 'utf8')
    expect(text).to.not.contain('the-key').and.to.not.contain('the-token')
    const parsed = schema.safeParse(parse(text))
    expect(parsed.success, JSON.stringify(parsed.error?.issues)).to.equal(true)
    const keyFile = parsed.data!.apisix.admin.keyFile!
    expect(await readFile(keyFile, 'utf8')).to.equal('the-key')
    expect((await stat(keyFile)).mode & 0o077, 'readable by its owner only').to.equal(0)
  })

  it('fails if there is no agent', async () => {
    const missing = startAgent({ ...options('127.0.0.1'), main: join(directory, 'none.ts') })
    expect(await problem(missing)).to.contain('does not exist')
  })

  it('fails with the end of the agent’s log if the agent exits', async () => {
    expect(await problem(start('console.error("admin.url is missing"); process.exit(2)'))).to.contain(
      'admin.url is missing'
    )
  })

  it('the agent does not outlive a sandbox that was killed', async () => {
    const tether = new URL('../../../../sandbox/tether.ts', import.meta.url).href
    const child = spawn(process.execPath, ['--import', tether, '-e', 'setInterval(() => {}, 1000)'], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc']
    })
    await once(child, 'spawn')
    const pid = child.pid!
    child.disconnect()
    await eventually('it has ended', () => !alive(pid))
  })
})
