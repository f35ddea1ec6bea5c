import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { configFile } from '../build/config.ts'
import { callHook } from '../build/hook.ts'
import { startRig, type Rig } from '../build/rig.ts'

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))
/** Many source addresses: the strictest limit is per address, and this test is about the other limits. */
const ATTACKERS = Array.from({ length: 20 }, (_, i) => `127.66.0.${i + 1}`)
const CONNECTIONS = 10_000
const PODS = 20

describe('feature: a flood on the hook port', () => {
  let rig: Rig
  const sockets: Socket[] = []
  before(async () => {
    rig = await startRig({ gateways: 1, barrier: true })
  })
  after(async () => {
    for (const socket of sockets) socket.destroy()
    await rig.close()
  })

  /** Opens one connection, which sends only this part of a request. */
  const open = async (text: string, from: string) => {
    const socket = connect({ port: rig.agent.port, host: '127.0.0.1', localAddress: from })
    socket.on('error', () => {})
    sockets.push(socket)
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
    if (text !== '') socket.write(text)
  }
  const flood = async (count: number) => {
    for (let i = 0; i < count; i += 100) {
      const batch = Array.from({ length: 100 }, (_, j) => (i + j) % ATTACKERS.length)
      // Nothing, half of a request, or a complete request, which the agent then holds or refuses.
      const texts = [
        '',
        'GET /v1/prestop HT',
        'GET /v1/prestop?namespace=shop&pod=nobody HTTP/1.1\r\nHost: x\r\n\r\n'
      ]
      await Promise.all(batch.map((who, j) => open(texts[j % texts.length] ?? '', ATTACKERS[who] ?? '')))
    }
  }

  it(`of ${CONNECTIONS} connections does not harm the hooks of ${PODS} pods that end meanwhile`, async () => {
    const pods = Array.from({ length: PODS }, (_, i) => rig.pod(`web-${i}`))
    rig.upstream('web', [...pods, rig.pod('stays')])
    await rig.settled('web', PODS + 1)
    await flood(CONNECTIONS / 2)
    const more = flood(CONNECTIONS / 2)
    const answers = pods.map(async pod => {
      rig.end(pod)
      return callHook({ port: rig.agent.port, from: pod.ip })
    })
    for (const { status, body } of await Promise.all(answers)) {
      expect([status, body.evidence]).to.deep.equal([200, 'barrier'])
    }
    await more
    expect(sockets).to.have.length(CONNECTIONS)

    // Once all connections of the flood are closed, the barrier must prove the next drain as usual.
    for (const socket of sockets) socket.destroy()
    const last = rig.pod('last')
    rig.upstream('last', [last, rig.pod('other')])
    await rig.settled()
    rig.end(last)
    const { body } = await callHook({ port: rig.agent.port, from: last.ip })
    expect(body).to.include({ evidence: 'barrier' })
  })

  it('of hooks on an agent with 256 file descriptors leaves it those that its proofs need (S13)', async () => {
    const [pod, stays] = [rig.pod('few'), rig.pod('few-stays')]
    rig.upstream('few', [pod, stays])
    await rig.applied()
    const config = configFile({ ...rig.settings, APISIX_ADMIN_KEY: rig.barrierToken })
    const run = `ulimit -n 256 && exec "${process.execPath}" "${MAIN}" --config "${config}"`
    const child = spawn('sh', ['-c', run], { env: { PATH: process.env['PATH'] } })
    let log = ''
    child.stdout.on('data', chunk => (log += String(chunk)))
    try {
      await until('it listens', () => log.includes('"listening"'))
      const port = Number(/"port":(\d+)/.exec(log)?.[1])
      await until('it is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
      const calls = Array.from({ length: 500 }, (_, i) => ({ port, from: ATTACKERS[i % 20] ?? '' }))
      const query = `namespace=${stays.namespace}&pod=${stays.name}`
      const strangers = Promise.allSettled(calls.map(call => callHook({ ...call, query })))
      rig.end(pod)
      const { status, body } = await callHook({ port, from: pod.ip })
      expect([status, body.evidence]).to.deep.equal([200, 'barrier'])
      await strangers
      expect(log).to.not.match(/E[MN]FILE/)
    } finally {
      child.kill('SIGKILL')
    }
  })
})
