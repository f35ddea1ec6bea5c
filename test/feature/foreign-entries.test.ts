import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import type { TestAgent } from '../build/agent.ts'
import { pair } from '../build/pair.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))
const TTL_MS = 4000
const MS = 20_000

async function foreignAt({ port }: TestAgent, { name }: Gateway): Promise<string | undefined> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const series = `apisix_drain_foreign_entries{gateway="${name}"} `
  return text
    .split('\n')
    .find(line => line.startsWith(series))
    ?.slice(series.length)
}

/** Runs `apisix-drain doctor` as a user does, and returns its finding `entries`. */
async function finding(rig: Rig): Promise<string> {
  const settings = Object.entries({ ...rig.settings, APISIX_ADMIN_KEY_ENV: 'KEY' })
  const env = Object.fromEntries(settings.map(([key, value]) => [`APISIX_DRAIN_${key}`, value]))
  const out = await new Promise<string>(resolve => {
    execFile(
      process.execPath,
      [MAIN, 'doctor'],
      { env: { PATH: process.env['PATH'], KEY: rig.barrierToken, ...env } },
      (_, stdout) => resolve(stdout)
    )
  })
  return out.split('\n').find(line => line.includes(' entries: ')) ?? out
}

describe('feature: entries that no agent of this release claims', () => {
  const test = sideBySide({ barrier: true, config: { APISIX_BARRIER_TTL: `${TTL_MS}ms` } })

  test('are reported, and removed by the setting only', async start => {
    const rig = await start()
    const [gateway] = rig.gateways as [Gateway]
    const [old] = await pair(rig)
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'drained' })
    const first = rig.agent
    const uids = () => gateway.barrier?.entries.all().map(({ uid }) => uid)
    await waitFor('the series begins', async () => (await foreignAt(first, gateway)) === '0', MS)
    gateway.barrier?.entries.put({
      uid: 'stranger',
      ip: rig.address(),
      port: undefined,
      state: 'sealed',
      ttl: 3600,
      by: 'other/drain'
    })
    await waitFor('the metric counts it', async () => (await foreignAt(first, gateway)) === '1', MS)
    expect(await finding(rig)).to.match(
      /^warn .*: no agent of this release claims 1 entry, put by other\/drain/
    )

    const beganAt = performance.now()
    const second = await rig.startAgent({ DRAIN_LIFT_FOREIGN: 'true' })
    await waitFor('it is removed', async () => uids()?.includes('stranger') === false, MS)
    // The second agent must wait since its own first sight of the entry. The first agent saw the entry before that.
    expect(performance.now() - beganAt).to.be.above(TTL_MS)
    expect(uids()).to.include(old.uid)
    for (const agent of [first, second])
      await waitFor('it counts none', async () => (await foreignAt(agent, gateway)) === '0', MS)
  })
})
