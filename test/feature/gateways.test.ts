import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import type { Waiting } from '../../agent/rules/drain/drain.ts'
import type { PodUid } from '../../agent/rules/drain/facts.ts'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { until } from '../build/apisix.ts'
import { expires } from '../build/expires.ts'
import { get } from '../build/load.ts'
import { pair, serving } from '../build/pair.ts'
import { PORTS, SHORT, type Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

async function ending(rig: Rig) {
  const [old, fresh] = await pair(rig, { graceSeconds: 300 })
  await until('the agent lists both', () => rig.agent.nodes('upstreams/web') === 2)
  return { old, fresh }
}

type Reports = { readonly gateways?: readonly { readonly name: string; readonly grade?: unknown }[] }
const gradeAt = ({ gateways }: Reports, { name }: Gateway) =>
  gateways?.find(report => report.name === `apisix/${name}`)?.grade ?? 'none'

describe('feature: gateways that cannot confirm (Control API)', () => {
  const test = sideBySide({ gateways: 2, config: { ...SHORT, APISIX_CONTROL_TIMEOUT: '1s' } })

  for (const reach of ['refused', 'silent'] as const)
    test(`one that cannot be reached (${reach}) never counts as having confirmed`, async start => {
      const rig = await start()
      const [, bad] = rig.gateways as [Gateway, Gateway]
      const { old } = await ending(rig)
      await bad.partition({ control: reach })
      const { body, ms, ranMs } = await rig.drain(old)
      expect(body).to.include({ result: 'unproved', evidence: 'none' })
      expect(ms, 'a first read may show').to.be.at.least(1900)
      expect(ranMs, 'no more is waited for').to.be.below(5000)
      expect(gradeAt(body, bad)).to.equal('none')
      expect(body.why).to.contain(bad.name)
    })

  test('one that is not Ready is not trusted, whatever it answers', async start => {
    const rig = await start()
    const [, bad] = rig.gateways as [Gateway, Gateway]
    const { old } = await ending(rig)
    rig.gatewayIs(bad, 'not-ready')
    const { body } = await rig.drain(old)
    expect(body).to.include({ result: 'unproved', evidence: 'none' })
    expect(gradeAt(body, bad)).to.equal('none')
    expect(body.gateways?.[1]?.why).to.contain('not Ready')
  })

  test('one that is Terminating still serves, so it has to confirm, and it can', async start => {
    const rig = await start()
    const [, leaving] = rig.gateways as [Gateway, Gateway]
    const { old } = await ending(rig)
    for (const worker of leaving.workers) worker.loseWatch()
    rig.gatewayIs(leaving, 'terminating')
    const hook = rig.drain(old)
    await until('the other one has confirmed', () => {
      // The gateway's own pod ends too.
      const drain = rig.agent.loop.drains().get(old.uid as PodUid)
      return drain?.phase === 'draining' && drain.verdict.gateways.some(({ grade }) => grade === 'observed')
    })
    for (const worker of leaving.workers) worker.restoreWatch()
    const { body } = await hook
    expect(body).to.include({ result: 'drained', evidence: 'observed' })
    expect(gradeAt(body, leaving)).to.equal('observed')
  })

  test('one whose worker has lost its watch keeps showing the node: no time outweighs that', async start => {
    const rig = await start({ workers: 1 })
    const [, stale] = rig.gateways as [Gateway, Gateway]
    const { old } = await ending(rig)
    stale.workers[0]!.loseWatch()
    const from = performance.now()
    const { body } = await expires(
      rig,
      old,
      'it is seen there for long',
      ({ why }) => why.includes('still lists') && performance.now() - from > 3000
    )
    expect(body.result).to.equal('unproved')
    expect(gradeAt(body, stale)).to.equal('none')
    expect(body.why).to.contain('still lists')
  })

  test('one that is gone no longer counts', async start => {
    const rig = await start()
    const [, dead] = rig.gateways as [Gateway, Gateway]
    const { old } = await ending(rig)
    await dead.partition({ control: 'refused' })
    const hook = rig.drain(old)
    await until('the removal is accepted', () => rig.nodes('upstreams/web').length === 1)
    rig.gatewayIs(dead, 'gone')
    const { body, ranMs } = await hook
    expect(body).to.include({ result: 'drained', evidence: 'observed' })
    expect(body.gateways).to.have.length(1)
    expect(ranMs).to.be.below(2000)
  })
})

describe('feature: gateways that cannot confirm (barrier)', () => {
  const test = sideBySide({ gateways: 2, barrier: true })
  // On a busy machine the answer may come before the last read of a gateway that has proved.
  const isProof = (gateway: Gateway) => (waiting: Waiting) => gradeAt(waiting, gateway) === 'barrier'

  test('one whose only worker is frozen cannot answer, so it has not confirmed', async start => {
    const rig = await start({ workers: 1 })
    const [good, bad] = rig.gateways as [Gateway, Gateway]
    const { old } = await ending(rig)
    bad.workers[0]!.freeze()
    const { body } = await expires(rig, old, 'the other one has confirmed', isProof(good))
    bad.workers[0]!.thaw()
    expect(body.result).to.equal('unproved')
    expect(gradeAt(body, bad)).to.equal('none')
  })

  test('one whose container does not run, and whose barrier refuses, delays no hook (A11)', async start => {
    const rig = await start()
    const [, bad] = rig.gateways as [Gateway, Gateway]
    const { old } = await ending(rig)
    await bad.partition({ barrier: 'refused', control: 'refused' })
    rig.gatewayIs(bad, 'crashed')
    const { body, ranMs } = await rig.drain(old)
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(body.gateways).to.have.length(1)
    expect(ranMs, 'a gateway that may still serve is waited for 120 s').to.be.below(60_000)
  })

  test('one that gives no evidence is named at once, while nothing ends', async start => {
    const rig = await start({ gateways: 1 })
    await rig.gateways[0]?.partition({ barrier: 'refused' })
    await until('the log warns', () =>
      rig.agent.lines.some(
        ({ msg, why }) => String(msg).startsWith('gateway gives') && String(why).includes('(ECONN')
      )
    )
  })

  test('one that was briefly unreachable handles the last pod when it is back', async start => {
    const rig = await start({ gateways: 1 })
    const [gateway] = rig.gateways as [Gateway]
    const only = rig.pod('web-1')
    await serving(rig, only)
    await gateway.partition({ barrier: 'refused' })
    rig.end(only)
    await until('it was tried', () => rig.agent.lines.some(({ msg }) => msg === 'barrier cannot be reached'))
    await gateway.partition({ barrier: 'open' })
    const state = () => gateway.barrier?.entries.look(only.ip, only.port)
    await until('it has the entry', () => state() !== 'free')
    expect(state()).to.equal('draining')
    expect(await get(`${gateway.urls.proxy}/`)).to.deep.equal({ status: 200, body: 'web-1' })
  })

  test('one that restarts after the ack gets all entries again', async start => {
    const rig = await start()
    const [, again] = rig.gateways as [Gateway, Gateway]
    const { old } = await ending(rig)
    await rig.drain(old)
    await again.restart()
    rig.gatewayIs(again, 'not-ready')
    await until('the agent has seen that', () => rig.agent.gatewayReady(again.name) === false)
    rig.gatewayIs(again, 'ready')
    await until('the entry is there again', () => again.barrier?.entries.look(old.ip, old.port) === 'sealed')
  })

  test('one that joins gets all entries, and counts only then', async start => {
    const rig = await start()
    const { old } = await ending(rig)
    const backend = await rig.serve(old)
    const slow = fetch(`${rig.gateways[0]!.urls.proxy}/?hold`)
    const other = fetch(`${rig.gateways[0]!.urls.proxy}/?hold`).catch(() => undefined)
    await until('a slow request is at the pod', () => backend.open > 0)
    const hook = rig.drain(old)
    await rig.entryIs('sealed', old)
    const joined = await rig.addGateway()
    await until('the new one is told', () => joined.barrier?.entries.look(old.ip, old.port) === 'sealed')
    backend.release()
    const { body } = await hook
    expect(body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(body.gateways?.map(({ grade }) => grade)).to.deep.equal(['barrier', 'barrier', 'barrier'])
    await slow.then(answer => answer.text())
    await other
  })

  test('one that joins after the proof delays a hook that comes later, until it has sealed the pod', async start => {
    const rig = await start()
    const { old } = await ending(rig)
    const uid = old.uid as PodUid
    rig.end(old)
    await until('it is proven', () => rig.agent.loop.drains().get(uid)?.phase === 'proven')
    const joined = await rig.addGateway({ silent: true })
    await until('the agent knows it', () => rig.agent.gatewayReady(joined.name) === true)
    let answered = false
    const hook = rig.hook(old).finally(() => (answered = true))
    await until('the hook is held', () => rig.agent.loop.held().length === 1)
    expect(answered).to.equal(false)
    await joined.partition({ barrier: 'open' })
    const { status, body } = await hook
    expect({ status, ...body }).to.include({ status: 200, result: 'drained', evidence: 'barrier' })
    expect(joined.barrier?.entries.look(old.ip, old.port)).to.equal('sealed')
  })

  test('one that joins and does not answer delays the ack', async start => {
    const rig = await start()
    const { old } = await ending(rig)
    const joined = await rig.addGateway({ silent: true })
    const { body } = await expires(rig, old, 'it is waited for', ({ why }) => why.includes(joined.name))
    expect(body.result).to.equal('unproved')
    expect(gradeAt(body, joined)).to.equal('none')
    expect(body.why).to.contain(joined.name)
  })

  test('a drain that waits does not delay another one', async start => {
    const rig = await start()
    const [a, b, spare] = [
      rig.pod('a-1', { graceSeconds: 300 }),
      rig.pod('b-1', { graceSeconds: 300 }),
      rig.pod('spare')
    ]
    rig.upstream('a', [a, spare])
    rig.upstream('b', [b, spare])
    const backend = await rig.serve(a)
    await rig.settled()
    const slow = fetch(`${rig.gateways[0]!.urls.proxy}/?hold`)
    const more = fetch(`${rig.gateways[0]!.urls.proxy}/?hold`).catch(() => undefined)
    await until('a slow request is at its pod', () => backend.open > 0)
    rig.end(a)
    rig.end(b)
    const held = rig.hook(a)
    const free = await rig.hook(b)
    expect(free.body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(free.ranMs).to.be.below(2000)
    expect(rig.agent.loop.held()).to.have.length(1)
    backend.release()
    expect((await held).body).to.include({ result: 'drained', evidence: 'barrier' })
    await slow.then(answer => answer.text())
    await more
  })
})

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'
const CHUNK = Buffer.from('"x",'.repeat(16_000))
/** Sends an answer of 60 MB, as fast as the client reads. */
function flood(socket: Socket, begin: string): void {
  let left = 60e6
  const more = (): void => {
    while (left > 0 && !socket.destroyed) {
      left -= CHUNK.length
      if (!socket.write(CHUNK)) return void socket.once('drain', more)
    }
    socket.end()
  }
  socket.write(`${HEAD}\r\n${begin}`)
  more()
}
const worker = '{"pid":1,"fit":true,"revisions":{}}'
const ends = (body: string) => (socket: Socket) => void socket.end(`${HEAD}\r\n${body}`)
/** What a program at the address of a gateway answers, at its Control API and at its barrier. */
const ANSWERS: Readonly<Record<string, (socket: Socket) => void>> = {
  'a list of 60 MB': socket => flood(socket, '['),
  'a value of 60 MB': socket => flood(socket, '{"counts":{"a":['),
  '200,000 workers': ends(`{"wire":1,"workers":[${`${worker},`.repeat(200_000)}${worker}]}`),
  '200,000 counters': ends(`{"counts":{${Array.from({ length: 200_000 }, (_, i) => `"k${i}":1`).join()}}}`),
  '200,000 levels': ends('['.repeat(200_000)),
  'an upgrade': socket => void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'),
  'half a body': socket => void socket.write(`${HEAD}content-length: 99\r\n\r\n{"fit":`),
  nothing: () => {}
}

describe('feature: gateways that answer what they want', () => {
  const test = sideBySide({ barrier: true })

  test('prove nothing, and neither stop the agent nor blind its metrics (S5, S6)', async start => {
    const rig = await start()
    const servers: Server[] = []
    const open = new Set<Socket>()
    try {
      for (const [name, answer] of Object.entries(ANSWERS)) {
        const host = rig.address()
        for (const port of [PORTS.control, PORTS.barrier]) {
          const server = createServer(socket => {
            open.add(socket)
            socket.on('error', () => {}).once('close', () => open.delete(socket))
            socket.once('data', () => answer(socket))
          }).listen(port, host)
          servers.push(server)
          await once(server, 'listening')
        }
        rig.showGateway(name.replaceAll(/\W+/g, '-'), host)
      }
      const { old } = await ending(rig)
      const { body } = await rig.drain(old)
      expect(body).to.include({ result: 'unproved' })
      const grades = body.gateways?.map(({ grade }) => grade ?? 'none')
      expect(grades?.filter(grade => grade === 'barrier')).to.have.lengthOf.at.most(1)
      await until('the answers of five are too large', () => {
        const drain = rig.agent.loop.drains().get(old.uid as PodUid)
        const gateways = drain && 'verdict' in drain ? drain.verdict.gateways : []
        return gateways.filter(({ why }) => why.includes('than we accept')).length === 5
      })
      expect(grades).to.have.length(1 + Object.keys(ANSWERS).length)
      const url = `http://127.0.0.1:${rig.agent.port}`
      expect((await fetch(`${url}/healthz`)).status).to.equal(200)
      expect(await (await fetch(`${url}/metrics`)).text()).to.contain('apisix_drain_')
    } finally {
      for (const socket of open) socket.destroy()
      for (const server of servers) server.close()
    }
  })
})
