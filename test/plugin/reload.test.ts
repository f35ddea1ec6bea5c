import { expect } from 'chai'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Backend } from './backend.ts'
import { stopAll } from './clean-up.ts'
import { backends, many, send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway } from './gateway.ts'
import { type GatewayOptions, PLUGIN } from './nginx-conf.ts'

describe('A gateway that is reloaded, or has its binary replaced', () => {
  let gateway: Gateway
  let a: Backend
  let b: Backend

  beforeEach(async () => {
    a = await Backend.start()
    b = await Backend.start()
  })
  afterEach(() => stopAll(gateway, a, b))

  it('reloads (HUP) keeps its instance, entries and counts, and old workers still count down', async () => {
    gateway = await Gateway.start({ workers: 2 })
    const { barrier, url } = gateway
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    await barrier.put(a.sealed, b.entry())
    const slow = send(`${url}/u?ms=1500`)
    await eventually('it arrived', () => b.requests.includes('/u?ms=1500'))
    const before = await barrier.state()
    gateway.reload()
    await eventually('new workers serve', async () => {
      const { workers, fit: ok } = await barrier.state()
      return ok && workers.filter(w => !w.exiting && !before.workers.some(o => o.pid === w.pid)).length === 2
    })
    const after = await barrier.inflight([a.uid, b.uid])
    expect(after.instance).to.equal(before.instance)
    expect(after.entries.find(e => e.uid === b.uid)?.inflight.requests).to.equal(1)
    expect(backends(await many(`${url}/u`, 12))).to.deep.equal([b.name])
    expect((await slow).status).to.equal(200)
    const done = await barrier.inflight([b.uid], 5)
    expect(done.entries[0]?.inflight.requests).to.equal(0)
  })

  const BEFORE =
    /^worker process (\d+) has not registered: it has not loaded the plugin, or is from before a reload that is not over$/
  const before: [string, GatewayOptions][] = [
    ['has another size of the dictionary of counts', {}],
    ['has the plugin at all', { load: 'none' }]
  ]
  for (const [what, options] of before) {
    it(`is reloaded and now ${what} is unfit until the old workers have gone`, async () => {
      gateway = await Gateway.start({ workers: 1, ...options })
      const { barrier, url } = gateway
      await gateway.configure({ u: { nodes: [a.node] } })
      await eventually('it serves', async () => (await send(`${url}/u`)).status === 200)
      const slow = send(`${url}/u?ms=3000`)
      await eventually('it arrived', () => a.requests.includes('/u?ms=3000'))
      const old = gateway.workers()
      gateway.reload({ workers: 1, counts: '4m' })
      await eventually('the new worker tells of the old one', async () => {
        const { workers, fit: ok, unfit } = await barrier.state()
        const isNew = workers.some(w => !w.exiting && w.fit && !old.includes(w.pid))
        return isNew && !ok && unfit.length === 1 && BEFORE.exec(unfit[0] ?? '')?.[1] === String(old[0])
      })
      expect((await slow).status).to.equal(200)
      await gateway.untilFit()
    })
  }

  it('starts and reloads several workers at once knows every one of them', async () => {
    const serving = async ({ barrier }: Gateway, pids: readonly number[] = []) =>
      eventually('all serve', async () => {
        const { workers, fit: ok } = await barrier.state()
        return ok && workers.filter(w => !w.exiting && !pids.includes(w.pid)).length === 2
      })
    // The bug lost only new slots, and only the first reload makes new slots. So this test reloads many gateways once each.
    for (let round = 0; round < 12; round += 1) {
      gateway = await Gateway.start({ workers: 2 })
      await gateway.configured({ u: { nodes: [a.node] } })
      await serving(gateway)
      const slow = send(`${gateway.url}/u?ms=300`)
      await eventually('it arrived', () => a.requests.length > round)
      const { workers } = await gateway.barrier.state()
      gateway.reload()
      await serving(
        gateway,
        workers.map(({ pid }) => pid)
      )
      await slow
      await gateway.stop()
    }
  })

  /** Makes a copy of the plugin that counts requests in another way, as a next release might. Returns its folder. */
  function nextRelease(): string {
    const folder = `${mkdtempSync(join(tmpdir(), 'apisix-drain-next-'))}/`
    cpSync(`${PLUGIN}apisix/drain/`, `${folder}apisix/drain`, { recursive: true })
    const file = join(folder, 'apisix/drain/cells.lua')
    let text = readFileSync(file, 'utf8')
    // The next release has its counters at other positions, so its reads of the old ones mean nothing.
    for (const [now, then] of [
      [/(?<=local LAYOUT = )\d+/, (n: string) => String(Number(n) + 1)],
      [/(?<=local CELLS {2}= )\d+/, (n: string) => String(Number(n) / 2)]
    ] as const) {
      expect(text).to.match(now)
      text = text.replace(now, then)
    }
    writeFileSync(file, text)
    return folder
  }

  const OTHER =
    /^worker 0 \(process (\d+)\) has another deny-list or counts in another way: a reload is not over$/

  it('has another size of the deny-list: it is unfit while workers read the old one', async () => {
    gateway = await Gateway.start({ workers: 1 })
    const { barrier, url } = gateway
    await gateway.configured({ u: { nodes: [a.node, b.node] } })
    await barrier.put(a.entry())
    const before = await barrier.state()
    const [old] = gateway.workers()
    const slow = send(`${url}/u?ms=3000`)
    await eventually('it arrived', () => b.requests.includes('/u?ms=3000'))
    gateway.reload({ workers: 1, dictionary: '3m' })
    // for a moment both the old and the new worker accept connections, so the old worker may answer
    await eventually('the new worker has the seal, and tells of the old one', async () => {
      await barrier.put(a.sealed)
      const { fit: ok, unfit, instance, entries } = await barrier.state()
      const says = unfit.length === 1 && OTHER.exec(unfit[0] ?? '')?.[1] === String(old)
      return says && !ok && instance !== before.instance && entries[0]?.state === 'sealed'
    })
    expect((await slow).status).to.equal(200)
    await gateway.untilFit()
  })

  it('has a release that counts in another way: it is unfit until the old workers have gone', async () => {
    const plugin = nextRelease()
    try {
      gateway = await Gateway.start({ workers: 1 })
      const { barrier, url } = gateway
      await gateway.configured({ u: { nodes: [a.node] } })
      await barrier.put(a.entry())
      const slow = send(`${url}/u?ms=3000`)
      await eventually('it arrived', () => a.requests.includes('/u?ms=3000'))
      gateway.reload({ workers: 1, plugin })
      await eventually('the new worker tells of the old one', async () => {
        const { fit: ok, unfit, workers } = await barrier.state()
        return !ok && workers.length === 2 && unfit.length === 1 && OTHER.test(unfit[0] ?? '')
      })
      const [oldest = 0, ...newer] = gateway.workers().toSorted((x, y) => x - y)
      // the master maps the memory of the counts: the new release needs its own mapping
      for (const pid of newer) expect(mappings(pid)).to.equal(mappings(oldest) + 1)
      expect((await slow).status).to.equal(200)
      await gateway.untilFit()
      const after = send(`${url}/u?ms=500`)
      await eventually('the new worker counts', async () => {
        const [entry] = (await barrier.inflight([a.uid])).entries
        return entry?.inflight.requests === 1
      })
      expect((await after).status).to.equal(200)
      expect((await barrier.inflight([a.uid], 5)).entries[0]?.inflight.requests).to.equal(0)
    } finally {
      rmSync(plugin, { recursive: true })
    }
  })

  it('(USR2) is unfit while two nginx, each with its own deny-list, serve on the same ports', async () => {
    // nginx accepts USR2 only if the process that started it has ended
    const under = ['sh', '-c', '("$@" & sleep 1); exec sleep 600', 'sh']
    const daemon = await Gateway.start({ workers: 1, under })
    gateway = daemon
    const { barrier, at } = daemon
    const master = (file = 'nginx.pid') => Number(readFileSync(join(at.dir, file), 'utf8'))
    const first = master()
    const both = new Set([first])
    const orphan = (pid: number) =>
      / 1 /.test(/^.*\) \S( \d+ )/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1] ?? '')
    try {
      await daemon.configured({ u: { nodes: [a.node] } })
      await daemon.untilFit()
      const { instance } = await barrier.state()
      await eventually('what started it has ended', () => orphan(first))
      process.kill(first, 'SIGUSR2')
      await eventually('there are two', () => master() !== first)
      both.add(master())
      const told = new Set<string>()
      await eventually('both have answered, and both say so', async () => {
        const state = await barrier.state()
        const says =
          state.unfit.join() ===
          'a second nginx serves on the same ports (USR2): it has a deny-list of its own'
        if (says && !state.fit) told.add(state.instance)
        return told.size === 2
      })
      expect([...told]).to.include(instance)
      process.kill(first, 'SIGQUIT')
      await eventually('the new one is alone', async () => {
        const state = await barrier.state()
        return state.fit && state.instance !== instance
      })
    } finally {
      for (const pid of both) kill(pid)
    }
  })
})

/** Returns the number of memory mappings that the process shares with others. */
const mappings = (pid: number): number =>
  readFileSync(`/proc/${pid}/maps`, 'utf8').split('/dev/zero (deleted)').length - 1

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch {
    // the process has already ended
  }
}
