import { expect } from 'chai'
import type { PodUid } from '../../../agent/rules/drain/facts.ts'
import { identify, type Caller, parseQuery } from '../../../agent/hook/identify.ts'
import { pod } from '../../build/pod.ts'
import { rowsOf } from '../../build/rows.ts'
import { manualHolds } from '../../build/serve.ts'

describe('identify', () => {
  const web = pod('web-1', { ips: ['10.0.0.7', 'fd00::7'] })
  const other = pod('web-2', { ips: ['10.0.0.8'] })
  const [agentA, agentB] = ['a', 'b'].map(name => pod(name, { ips: ['192.168.1.5'], hostNetwork: true }))
  const holds = () => {
    const found = manualHolds(web, other, ...[agentA, agentB].filter(found => found !== undefined))
    found.behind.push(pod('late', { ips: ['10.0.0.9'] }))
    return found
  }
  const ask = (caller: Partial<Caller>, { pods = holds(), signal = new AbortController().signal } = {}) =>
    identify({ address: '10.0.0.7', named: undefined, uid: undefined, ...caller }, pods, signal)
  const named = (name: string, namespace = 'shop') => ({ namespace, name })
  const HOST = '192.168.1.5'
  const STRANGER = '172.16.0.1'

  interface Row {
    readonly case: string
    readonly given: Partial<Caller>
    readonly pod?: string
    readonly error?: string
    readonly why: string
  }
  for (const { case: what, given, pod: name, error, why } of rowsOf(
    'callers.yaml',
    import.meta.url
  ) as readonly Row[])
    it(`${error === undefined ? 'accepts' : 'refuses'} ${what}`, async () => {
      const identity = await ask(given)
      expect(identity.ok ? identity.pod.name : identity.error).to.equal(name ?? error)
      if (!identity.ok) expect(identity.why).to.match(new RegExp(why))
    })

  it('never identifies a host-network pod by its address, even a lone one: other packets come from there too', async () => {
    const alone = pod('a', { ips: [HOST], hostNetwork: true })
    const unseen = manualHolds()
    unseen.behind.push(alone)
    for (const pods of [manualHolds(alone), unseen]) {
      const identity = await ask({ address: HOST }, { pods })
      expect(identity.ok ? '' : identity.error).to.equal('not-named')
      const byName = await ask({ address: HOST, named: named('a') }, { pods })
      expect(byName.ok && byName.pod.name).to.equal('a')
    }
  })

  it('does not confuse an ended pod with the one that has its address now', async () => {
    const before = pod('web-0', { ips: ['10.0.0.7'], phase: 'Failed', uid: 'uid-before' as PodUid })
    const identity = await ask({}, { pods: manualHolds(before, web) })
    expect(identity.ok && identity.pod.name).to.equal('web-1')
  })

  it('asks for a name while two pods have the address', async () => {
    const next = pod('web-9', { ips: ['10.0.0.7'] })
    const pods = manualHolds(web, next)
    const unclear = await ask({}, { pods })
    expect(unclear.ok ? '' : unclear.error).to.equal('not-named')
    const clear = await ask({ named: named('web-9') }, { pods })
    expect(clear.ok && clear.pod.name).to.equal('web-9')
  })

  it('reports that Kubernetes cannot be reached, and passes on an abort', async () => {
    const pods = holds()
    pods.askError = new Error('no connection')
    const caller = { address: STRANGER, named: named('x') }
    const identity = await ask(caller, { pods })
    expect(identity.ok ? '' : identity.error).to.equal('cannot-ask-kubernetes')
    let thrown: unknown
    await ask(caller, { pods, signal: AbortSignal.abort() }).catch((err: unknown) => (thrown = err))
    expect(thrown).to.equal(pods.askError)
  })
})

describe('prestop query', () => {
  const parse = (text: string) => parseQuery(new URLSearchParams(text))

  it('has no required parameter', () => {
    expect(parse('')).to.deep.equal({
      ok: true,
      times: { timeoutMs: undefined, sleepMs: undefined, atLeastMs: undefined },
      named: undefined,
      uid: undefined,
      container: undefined
    })
  })

  it('reads every parameter', () => {
    expect(
      parse('timeout=2.5s&sleep=5s&atLeast=4s&namespace=shop&pod=web-1.a&uid=0-a&container=app')
    ).to.deep.equal({
      ok: true,
      times: { timeoutMs: 2500, sleepMs: 5000, atLeastMs: 4000 },
      named: { namespace: 'shop', name: 'web-1.a' },
      uid: '0-a',
      container: 'app'
    })
  })

  for (const { query, why } of rowsOf('queries.yaml', import.meta.url) as readonly Record<
    'query' | 'why',
    string
  >[])
    it(`refuses ?${query}`, () => {
      const parsed = parse(query)
      if (parsed.ok) throw new Error('taken')
      expect(parsed.error).to.equal('bad-request')
      expect(parsed.why).to.match(new RegExp(why))
    })

  it('reports all problems at once', () => {
    const parsed = parse('uid=%0a&timeout=y')
    expect(parsed.ok ? '' : parsed.why).to.match(/timeout.*; uid/)
  })
})
