import { EVERY_MS, MOST_LINES } from '../../../agent/base/log.ts'
import { expect } from 'chai'
import { createApp } from '../../../agent/hook/app.ts'
import { createOnlyApisix } from '../../../agent/hook/prestop.ts'
import { until } from '../../build/apisix.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { pod } from '../../build/pod.ts'
import { ackFor, manualHolds, serveParts } from '../../build/serve.ts'

describe('prestop', () => {
  const web = pod('web-1', { ips: ['10.0.0.7'] })
  const setUp = (...pods: (typeof web)[]) => {
    const holds = manualHolds(...(pods.length > 0 ? pods : [web]))
    const clock = manualClock()
    const parts = serveParts(holds, clock)
    const app = createApp(parts)
    let hungUp = 0
    const destroy = () => ((hungUp += 1), undefined as never)
    const call = async (path = '/v1/prestop', init: RequestInit = {}, remoteAddress = '10.0.0.7') =>
      app.request(path, init, { incoming: { socket: { remoteAddress, destroy } } })
    const waiting = (count: number) => {
      if (holds.held.length >= count) return Promise.resolve()
      const { promise, resolve } = Promise.withResolvers<void>()
      holds.onHeld = () => void (holds.held.length >= count && resolve())
      return promise
    }
    /** Calls, and waits until the hook is held. */
    const held = async (path?: string, init?: RequestInit) => {
      const { length } = holds.held
      const answer = call(path, init)
      await waiting(length + 1)
      return { answer, hook: holds.held[length]! }
    }
    const metric = async (name: string) =>
      (await parts.metrics.registry.metrics())
        .split('\n')
        // Every series exists from the start, so series with the value 0 are left out.
        .filter(line => line.startsWith(`apisix_drain_${name}`) && !line.endsWith('} 0'))
    return { holds, clock, parts, call, held, waiting, metric, hungUp: () => hungUp }
  }
  const json = async (response: Response) => (await response.json()) as Record<string, unknown>

  it('logs a bounded number of refusals in a minute, and how many it left out', async () => {
    const { clock, parts, call, metric } = setUp()
    const refused = () => call('/v1/prestop?namespace=shop&pod=other')
    const lines = () => parts.lines.filter(({ msg }) => msg === 'hook refused')
    for (let i = 0; i < 3 * MOST_LINES; i++) await refused()
    expect(lines()).to.have.length(MOST_LINES)
    clock.advance(EVERY_MS)
    await refused()
    expect(lines().at(-1)).to.include({ leftOut: 2 * MOST_LINES })
    expect((await metric('hook_refusals_total')).join(), 'all of them are counted').to.match(
      new RegExp(`forbidden"} ${3 * MOST_LINES + 1}$`)
    )
  })

  it('waits for the answer and passes it on', async () => {
    const { holds, clock, call, waiting, metric } = setUp()
    const answer = call('/v1/prestop?timeout=5s', { method: 'POST' })
    await waiting(1)
    expect(holds.held[0]?.hook).to.include({
      uid: web.uid,
      timeoutMs: 5000,
      receivedAt: clock.now()
    })
    expect(await metric('hook_waiting')).to.deep.equal(['apisix_drain_hook_waiting 1'])
    clock.advance(4)
    holds.held[0]?.answer()
    const response = await answer
    expect(response.status).to.equal(200)
    const { status: _status, ...body } = ackFor(web)
    expect(await json(response)).to.deep.equal(body)
    expect(response.headers.get('cache-control')).to.equal('no-store')
    expect(await metric('hook_waiting')).to.deep.equal(['apisix_drain_hook_waiting 0'])
    expect(clock.pending).to.equal(0)
  })

  it('binds no hook to the sleep that it replaces if its namespace says so, and asks that once', async () => {
    const clock = manualClock()
    const asked: string[] = []
    let answer = (): Promise<unknown> => Promise.reject(new Error('away'))
    const call = async (_: string, path: string) => (asked.push(path), { json: await answer() })
    const holds = manualHolds(web)
    const app = createApp(serveParts(holds, clock, { isOnlyApisix: createOnlyApisix(call, clock) }))
    const held = async () => {
      const { length } = holds.held
      const env = { incoming: { socket: { remoteAddress: '10.0.0.7' } } }
      const response = app.request('/v1/prestop?sleep=5s&atLeast=5s', { method: 'POST' }, env)
      await until('held', () => holds.held.length > length)
      holds.held[length]?.answer()
      await response
      return holds.held[length]?.hook.atLeastMs
    }
    expect(await held()).to.equal(5000)
    clock.advance(5000)
    answer = () => Promise.resolve({ metadata: { annotations: { 'apisix-drain.io/only-apisix': 'true' } } })
    expect([await held(), await held()]).to.deep.equal([undefined, undefined])
    expect(asked).to.deep.equal(['/api/v1/namespaces/shop', '/api/v1/namespaces/shop'])
  })

  for (const path of ['//v1/prestop', '/v1//prestop', '///v1/prestop?timeout=9s']) {
    it(`answers to ${path}, as old kubelets write it`, async () => {
      const { answer, hook } = await setUp().held(`http://agent${path}`)
      hook.answer()
      expect((await answer).status).to.equal(200)
    })
  }

  const refusals: Record<string, [path: string, address: string, status: number, error: string]> = {
    'an unknown parameter': ['/v1/prestop?until=barrier', '10.0.0.7', 400, 'bad-request'],
    'a bad timeout': ['/v1/prestop?timeout=25', '10.0.0.7', 400, 'bad-request'],
    'an unknown pod': ['/v1/prestop', '10.9.9.9', 404, 'unknown-pod'],
    'a pod of another namespace': ['/v1/prestop?namespace=bank&pod=web-1', '10.0.0.7', 403, 'forbidden']
  }
  for (const [what, [path, address, status, error]] of Object.entries(refusals)) {
    it(`refuses ${what} with ${status} and the reason`, async () => {
      const { call, metric, holds } = setUp()
      const response = await call(path, {}, address)
      expect(response.status).to.equal(status)
      const body = await json(response)
      expect(body.error).to.equal(error)
      expect(body.why).to.be.a('string').that.is.not.empty
      expect(holds.held).to.have.length(0)
      expect(await metric('hook_refusals')).to.deep.equal([
        `apisix_drain_hook_refusals_total{error="${error}"} 1`
      ])
    })
  }

  it('answers 503 with a retry hint while it cannot vouch', async () => {
    const { call, holds } = setUp()
    holds.vouch = { ok: false, why: 'the pod watch has not synced yet' }
    const response = await call()
    expect(response.status).to.equal(503)
    expect(response.headers.get('retry-after')).to.equal('1')
    expect(await json(response)).to.deep.equal({
      error: 'cannot-vouch',
      why: 'the pod watch has not synced yet'
    })
  })

  it('answers 503, and logs the error, if the loop fails', async () => {
    const { held, parts } = setUp()
    const { answer, hook } = await held()
    hook.fail(new Error('a bug'))
    const response = await answer
    expect(response.status).to.equal(503)
    const body = await json(response)
    expect(body.error).to.equal('no-answer')
    expect(JSON.stringify(body)).not.to.include('a bug')
    expect(parts.lines.find(({ level }) => level === 'error')).to.include({
      level: 'error',
      msg: 'hook failed'
    })
  })

  it('answers half the reserve before the end of the grace if the loop misses the deadline, not earlier', async () => {
    const { call, holds, waiting, clock } = setUp(
      pod('web-1', { ips: ['10.0.0.7'], deletionAt: 1_000_000 + 20_000 })
    )
    let answered = false
    const answer = call().then(response => ((answered = true), response))
    await waiting(1)
    clock.advance(18_499)
    await new Promise(setImmediate)
    expect(answered).to.equal(false)
    clock.advance(1)
    const response = await answer
    expect(response.status).to.equal(503)
    expect((await json(response)).error).to.equal('no-answer')
    expect(holds.held[0]?.signal.aborted).to.equal(true)
  })

  it('counts the grace of the spec if no deletion is known', async () => {
    const { held, clock } = setUp(pod('web-1', { ips: ['10.0.0.7'], graceMs: 10_000 }))
    const { answer } = await held()
    clock.advance(8500)
    expect((await answer).status).to.equal(503)
  })

  it('bounds the hooks of one pod with 429, and frees a place when one leaves', async () => {
    const { call, holds, waiting } = setUp()
    const two = [call(), call()]
    await waiting(2)
    const third = await call()
    expect(third.status).to.equal(429)
    expect(third.headers.get('retry-after')).to.equal('1')
    holds.held[0]?.answer()
    await two[0]
    const fourth = call()
    await waiting(3)
    for (const held of holds.held) held.answer()
    expect((await fourth).status).to.equal(200)
    await two[1]
  })

  it('bounds all hooks together with 503', async () => {
    const pods = Array.from({ length: 11 }, (_, i) => pod(`web-${i}`, { ips: [`10.0.1.${i}`] }))
    const { call, holds, waiting } = setUp(...pods)
    const ten = pods.slice(0, 10).map((_, i) => call('/v1/prestop', {}, `10.0.1.${i}`))
    await waiting(10)
    const response = await call('/v1/prestop', {}, '10.0.1.10')
    expect(response.status).to.equal(503)
    expect((await json(response)).error).to.equal('too-many-hooks')
    for (const held of holds.held) held.answer()
    await Promise.all(ten)
  })

  it('releases the hook and the place of a caller that disconnects', async () => {
    const { held, metric, parts } = setUp()
    const caller = new AbortController()
    const { answer, hook } = await held('/v1/prestop', { signal: caller.signal })
    caller.abort()
    expect((await answer).status).to.equal(499)
    expect(hook.signal.aborted).to.equal(true)
    expect(parts.slots.waiting).to.equal(0)
    expect(await metric('hook_abandoned')).to.deep.equal(['apisix_drain_hook_abandoned_total 1'])
  })

  describe('while the agent stops', () => {
    it('breaks off new hooks, lets held hooks finish, then breaks off the rest: their callers ask another agent', async () => {
      const { call, holds, waiting, parts, hungUp } = setUp()
      const [first, second] = [call(), call()]
      await waiting(2)
      parts.slots.close()
      const late = await call()
      expect((await json(late)).error).to.equal('shutting-down')
      expect(hungUp()).to.equal(1)

      let empty = false
      const emptied = parts.slots.emptied(new AbortController().signal).then(() => (empty = true))
      holds.held[0]?.answer()
      expect((await first)?.status).to.equal(200)
      expect([empty, hungUp()]).to.deep.equal([false, 1])
      parts.slots.releaseAll()
      const response = await second
      expect((await json(response)).error).to.equal('shutting-down')
      expect(hungUp()).to.equal(2)
      await emptied
    })

    it('stops waiting for hooks at the time limit', async () => {
      const { held, parts } = setUp()
      const { answer, hook } = await held()
      const over = new AbortController()
      const emptied = parts.slots.emptied(over.signal).catch((err: unknown) => err)
      over.abort(new Error('the bound'))
      expect(await emptied).to.have.property('message', 'the bound')
      expect(await parts.slots.emptied(over.signal).catch(() => 'at once')).to.equal('at once')
      hook.answer()
      await answer
    })
  })
})
