import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { systemClock } from '../../../agent/base/clock.ts'
import { createApp } from '../../../agent/hook/app.ts'
import { listen, hookPolicy, type Listening, type PortPolicy } from '../../../agent/hook/listen.ts'
import { endAll, type Ends } from '../../../sandbox/ends.ts'
import { ranMs } from '../../build/apisix.ts'
import { pod } from '../../build/pod.ts'
import { manualHolds, serveParts } from '../../build/serve.ts'
import { createHookSlots } from '../../../agent/hook/prestop.ts'

describe('listen', () => {
  const open: Ends = []
  afterEach(() => endAll(open))

  const setUp = async (limits: Partial<PortPolicy> = {}, host = '127.0.0.1') => {
    const holds = manualHolds(pod('web-1', { ips: ['127.0.0.1'] }))
    const parts = serveParts(holds, systemClock)
    const listening = await listen(createApp(parts), { host, port: 0 }, { ...hookPolicy(10), ...limits })
    open.push(() => {
      listening.server.closeAllConnections()
      return listening.close()
    })
    const heldOnce = () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      holds.onHeld = resolve
      return promise
    }
    return { holds, parts, listening, heldOnce }
  }

  const curl = (url: string) => {
    const child = spawn('curl', ['-sS', '-m', '8', '-w', '\n%{http_code}', url])
    open.push(() => void child.kill('SIGKILL'))
    let text = ''
    child.stdout.on('data', chunk => (text += String(chunk)))
    return { child, done: once(child, 'close').then(() => text) }
  }

  /** Starts a server with one hook that curl has called, and that is held. */
  const heldCall = async (limits: Partial<PortPolicy> = {}, host?: string) => {
    const { holds, parts, listening, heldOnce } = await setUp(limits, host)
    const held = heldOnce()
    const call = curl(`http://127.0.0.1:${listening.port}/v1/prestop`)
    await held
    return { ...call, parts, listening, hook: holds.held[0]! }
  }

  const socket = async ({ port }: Listening): Promise<Socket> => {
    const found = connect(port, '127.0.0.1')
    found.on('error', () => {})
    open.push(() => void found.destroy())
    await once(found, 'connect')
    return found
  }

  /** Returns everything that the server sends until it ends the connection. */
  const hear = async (from: Socket) => {
    let text = ''
    from.on('data', chunk => (text += String(chunk)))
    await once(from, 'close')
    return text
  }

  it('answers the doubled slash of an old kubelet', async () => {
    const { holds, listening, heldOnce } = await setUp()
    const held = heldOnce()
    const client = await socket(listening)
    client.write(
      'GET //v1/prestop HTTP/1.1\r\nHost: x\r\nUser-Agent: kube-probe/1.20\r\nConnection: close\r\n\r\n'
    )
    await held
    holds.held[0]?.answer()
    expect(await hear(client)).to.match(/^HTTP\/1.1 200/)
  })

  it('recognises an IPv4 caller on a listener for both families', async () => {
    const { done, hook } = await heldCall({}, '::')
    hook.answer()
    expect(await done).to.match(/200$/)
  })

  it('releases the hook at once when curl is killed', async () => {
    const { child, parts, hook } = await heldCall()
    child.kill('SIGKILL')
    if (!hook.signal.aborted) await once(hook.signal, 'abort')
    await parts.slots.emptied(AbortSignal.timeout(2000))
  })

  it('holds a hook for longer than the time limit of request headers', async () => {
    const { done, hook } = await heldCall({ headersMs: 100, requestMs: 200, idleMs: 100 })
    await systemClock.sleep(700)
    expect(hook.signal.aborted).to.equal(false)
    hook.answer()
    expect(await done).to.match(/200$/)
  })

  const HEAD = 'GET /v1/prestop HTTP/1.1\r\nHost: x\r\n'
  const POST = HEAD.replace('GET', 'POST')
  const many = Array.from({ length: 500 }, (_, i) => `a${i}: b`).join('\r\n')
  const raw: Record<string, [sent: string, heard: RegExp, limits?: Partial<PortPolicy>]> = {
    'ends a connection whose headers do not arrive': [
      HEAD,
      /^HTTP\/1.1 408/,
      { headersMs: 100, requestMs: 200 }
    ],
    'refuses headers that are too large': [
      `${HEAD}X-Long: ${'x'.repeat(2000)}\r\n\r\n`,
      /^HTTP\/1.1 431/,
      { maxHeaderBytes: 1024 }
    ],
    'refuses more headers than a hook can have': [
      `${HEAD}Connection: close\r\n${many}\r\n\r\n`,
      /^HTTP\/1.1 431/
    ],
    'refuses bytes that are not HTTP': ['\u0016\u0003\u0001 hello\r\n\r\n', /^HTTP\/1.1 400/],
    'answers a caller that offers another protocol as any other': [
      'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n',
      /^HTTP\/1.1 200/
    ],
    'reads no body: its caller gets an error, and its connection ends': [
      `${POST}Content-Length: 1000000000\r\n\r\n`,
      /^HTTP\/1.1 413/
    ],
    'reads no body in chunks': [`${POST}Transfer-Encoding: chunked\r\n\r\n`, /^HTTP\/1.1 413/]
  }
  for (const [what, [sent, heard, limits]] of Object.entries(raw))
    it(what, async () => {
      const client = await socket((await setUp(limits)).listening)
      client.write(sent)
      expect(await hear(client)).to.match(heard)
    })

  for (const connections of [
    { all: 2, perAddress: 9 },
    { all: 9, perAddress: 2 }
  ]) {
    it(`ends the longest-idle connection to admit a new one: ${JSON.stringify(connections)}`, async () => {
      const { listening } = await setUp({ connections })
      const first = await socket(listening)
      const second = await socket(listening)
      const third = await socket(listening)
      expect(await hear(first)).to.equal('')
      for (const kept of [second, third]) {
        kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
        expect(await hear(kept)).to.match(/^HTTP\/1.1 200/)
      }
    })

    it(`never ends a connection with a held hook to admit a new one: ${JSON.stringify(connections)}`, async () => {
      const { holds, listening, heldOnce } = await setUp({ connections })
      const calls: ReturnType<typeof curl>[] = []
      for (let i = 0; i < 2; i++) {
        const held = heldOnce()
        calls.push(curl(`http://127.0.0.1:${listening.port}/v1/prestop`))
        await held
      }
      expect(await hear(await socket(listening))).to.equal('')
      for (const { answer } of holds.held) answer()
      for (const { done } of calls) expect(await done).to.match(/200$/)
    })
  }

  it('ends connections of the address that has most of them, if the port is full, and not the one that came first', async () => {
    const { listening } = await setUp({ connections: { all: 4, perAddress: 4 } })
    const caller = await socket(listening)
    const ended: Promise<unknown>[] = []
    for (let i = 0; i < 10; i++) {
      const attacker = connect({ port: listening.port, host: '127.0.0.1', localAddress: '127.67.0.9' })
      attacker.on('error', () => {})
      open.push(() => void attacker.destroy())
      ended.push(once(attacker, 'close'))
      await once(attacker, 'connect')
    }
    await Promise.all(ended.slice(0, 7))
    caller.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    expect(await hear(caller)).to.match(/^HTTP\/1\.1 200 /)
  })

  it('sends a pending answer before it closes, and accepts no new connection', async () => {
    const { done, listening, hook } = await heldCall()
    const closed = listening.close()
    const late = connect(listening.port, '127.0.0.1')
    const [err] = (await once(late, 'error')) as [NodeJS.ErrnoException]
    expect(err.code).to.equal('ECONNREFUSED')
    hook.answer()
    expect(await done).to.match(/200$/)
    await closed
  })

  it('keeps 2,500 connections that come at once waiting, and drops none', async () => {
    const { listening } = await setUp()
    const began = performance.now()
    // None of them is accepted before all have come. A connection that is dropped tries again after a second.
    await Promise.all(Array.from({ length: 2500 }, () => socket(listening)))
    expect(ranMs(began)).to.be.below(900)
  })

  it('closes although a caller has sent half of a request (S10)', async () => {
    const { listening } = await setUp()
    const client = await socket(listening)
    client.write('GET /healthz HT')
    const heard = hear(client)
    await (await fetch(`http://127.0.0.1:${listening.port}/healthz`)).text()
    await listening.close()
    expect(await heard).to.equal('')
  })

  it('reports that the address is taken, and a later failure of the server', async () => {
    const { listening, parts } = await setUp()
    const at = { host: '127.0.0.1', port: listening.port }
    const err: unknown = await listen(createApp(parts), at, hookPolicy(1)).catch((err: unknown) => err)
    expect(err).to.have.property('code', 'EADDRINUSE')
    listening.server.emit('error', new Error('EMFILE'))
    expect(await listening.failed.catch((err: unknown) => err)).to.have.property('message', 'EMFILE')
  })
})

describe('hook slots', () => {
  const enter = (slots: ReturnType<typeof createHookSlots>) => {
    const slot = slots.enter()
    if (!slot.ok) throw new Error(slot.why)
    return slot
  }

  it('counts a hook that leaves twice once', () => {
    const slots = createHookSlots({ maxHooks: 2, maxHooksPerPod: 2 })
    const [first, second] = [enter(slots), enter(slots)]
    first.claim('a')
    second.claim('a')
    first.leave()
    first.leave()
    expect(slots.waiting).to.equal(1)
    expect(enter(slots).claim('a')).to.equal(undefined)
    expect(slots.enter().ok).to.equal(false)
  })

  it('forgets a pod when the last of its hooks has left', () => {
    const slots = createHookSlots({ maxHooks: 2, maxHooksPerPod: 1 })
    for (let i = 0; i < 3; i++) {
      const slot = enter(slots)
      expect(slot.claim('a'), `time ${i}`).to.equal(undefined)
      slot.leave()
    }
    const [one, two] = [enter(slots), enter(slots)]
    one.claim('a')
    expect(two.claim('a')?.error).to.equal('too-many-hooks-of-pod')
    two.leave()
    expect(slots.waiting).to.equal(1)
  })
})
