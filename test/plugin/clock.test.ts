import { expect } from 'chai'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Backend } from './backend.ts'
import { stopAll } from './clean-up.ts'
import { backends, many, send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'

const SOURCE = fileURLToPath(new URL('./step-clock.c', import.meta.url))
const HOUR = 3600

describe('A gateway whose wall clock is set', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend
  let dir: string

  before(function compile() {
    dir = mkdtempSync(join(tmpdir(), 'apisix-drain-clock-'))
    execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', join(dir, 'step-clock.so'), SOURCE, '-ldl'])
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  /** Sets the clock ahead. It uses a single write, so that nginx never reads half of the value. */
  const ahead = (seconds: number) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(seconds))
    writeFileSync(join(dir, 'ahead'), bytes, { flag: 'r+' })
  }

  beforeEach(async () => {
    a = await Backend.start()
    b = await Backend.start()
    writeFileSync(join(dir, 'ahead'), Buffer.alloc(8))
    const env = [`LD_PRELOAD=${join(dir, 'step-clock.so')}`, `CLOCK_AHEAD=${join(dir, 'ahead')}`]
    gateway = await Gateway.start({ workers: 2, under: ['env', ...env] })
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
  })
  afterEach(() => stopAll(gateway, a, b))

  /** Sets the clock, and waits until the gateway uses it. */
  const set = async (seconds: number) => {
    ahead(seconds)
    await eventually('it has another time', async () => {
      const { now } = await gateway.barrier.state()
      return Math.abs(now - Date.now() / 1000 - seconds) < 30
    })
  }

  it('forward keeps its entries for as long as they were put for', async () => {
    const { barrier, url } = gateway
    await barrier.put({ ...a.sealed, ttl: 60 })
    await barrier.put({ ...b.entry(), ttl: 60 })
    await set(130)
    const { entries, fit } = await barrier.state()
    expect(entries.map(e => [e.uid, e.state])).to.have.deep.members([
      [a.uid, 'sealed'],
      [b.uid, 'draining']
    ])
    for (const { ttl } of entries) expect(ttl).to.be.within(20, 60)
    expect(fit).to.equal(true)
    expect(backends(await many(`${url}/u`, 12))).to.deep.equal([b.name])
    expect((await barrier.state()).entries.find(e => e.uid === b.uid)?.bypasses).to.equal(12)
    await barrier.put({ ...b.sealed, ttl: 60 })
    expect((await send(`${url}/u`)).status).to.equal(503)
    await set(10 * 365 * 24 * HOUR)
    expect((await send(`${url}/u`)).status).to.equal(503)
  })

  it('back keeps no entry for longer than it was put for', async () => {
    const { barrier, url } = gateway
    await barrier.put({ ...a.sealed, ttl: 2 }, { ...b.sealed, ttl: 2 })
    await set(-HOUR)
    await eventually('they are gone', async () => (await barrier.state()).entries.length === 0)
    expect(backends(await many(`${url}/u`, 12))).to.deep.equal([a.name, b.name].toSorted())
  })

  it('back ends a long poll in time, and keeps checking its workers', async () => {
    const { barrier, url } = gateway
    await barrier.put(a.sealed, b.entry())
    const slow = send(`${url}/u?hold`)
    await eventually('it arrived', () => b.requests.includes('/u?hold'))
    const poll = barrier.inflight([b.uid], 1)
    // the clock changes every 50 ms, so it certainly changes during the poll
    let back = 0
    const setting = setInterval(() => ahead((back -= HOUR)), 50)
    const { entries } = await poll.finally(() => clearInterval(setting))
    expect(entries[0]?.inflight.requests).to.equal(1)
    await eventually('every worker has shown a sign of life since', async () => {
      const { workers, now } = await barrier.state()
      return workers.length === 2 && workers.every(({ seen }) => Math.abs(now - seen) < 30)
    })
    b.release()
    expect((await slow).status).to.equal(200)
  })
})
