import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from '../../../build/apisix.ts'

const main = fileURLToPath(new URL('../../../../sandbox/main.ts', import.meta.url))
const run = (...args: string[]) =>
  spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', timeout: 120_000 })

describe('sandbox: one stand-in alone', () => {
  /** Starts the program, waits for its first lines, and returns the result of Ctrl-C. */
  async function alone(...args: string[]) {
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', chunk => (output += String(chunk)))
    await until('it says where it is', () => output.includes('try'), 60_000)
    return {
      output,
      async stop() {
        child.kill('SIGINT')
        const [code] = (await once(child, 'exit')) as [number | null]
        return code
      }
    }
  }

  it('serves APISIX, reports a port that is taken, and ends at Ctrl-C', async () => {
    const apisix = await alone('--only', 'apisix', '--proxy', '0', '--admin', '0', '--control', '0')
    const url = /^admin\s+(\S+)/m.exec(apisix.output)?.[1]
    const key = /X-API-KEY: (\w+)/.exec(apisix.output)?.[1] ?? ''
    const response = await fetch(`${url}/apisix/admin/upstreams`, { headers: { 'x-api-key': key } })
    expect(await response.json()).to.deep.include({ total: 0 })
    const port = /^proxy\s+\S+:(\d+)/m.exec(apisix.output)?.[1] ?? ''
    const { status, stderr } = run('--only', 'apisix', '--proxy', port, '--admin', '0', '--control', '0')
    expect(status).to.equal(1)
    expect(stderr).to.contain('EADDRINUSE').and.to.contain(port)
    expect(await apisix.stop()).to.equal(0)
  })

  it('serves Kubernetes, with a kubeconfig, and ends at Ctrl-C', async () => {
    const kubernetes = await alone('--only', 'kubernetes', '--port', '0')
    const file = /^kubeconfig\s+(\S+)/m.exec(kubernetes.output)?.[1] ?? ''
    expect(await readFile(file, 'utf8')).to.contain('certificate-authority-data')
    expect(await kubernetes.stop()).to.equal(0)
    expect(existsSync(file), 'and takes its kubeconfig with it').to.equal(false)
  })
})
