import { expect } from 'chai'
import { Agent } from 'node:http'
import type { Backend } from './backend.ts'
import { send } from './client.ts'
import { eventually } from './eventually.ts'
import { Gateway, type Upstream } from './gateway.ts'
import { startAll, Sessions } from './sessions.ts'

/** APISIX's chash picks a pod by the hash of the session's key, and stores nothing about sessions. */
describe('Sticky sessions (chash)', () => {
  let gateway: Gateway
  let pods: Backend[]
  let sessions: Sessions
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })

  before(async () => {
    gateway = await Gateway.start({ workers: 2 })
  })
  beforeEach(async () => {
    pods = await startAll(4)
    sessions = new Sessions(`${gateway.url}/u`, agent)
  })
  afterEach(async () => {
    await gateway.barrier.remove(...pods.map(({ uid }) => uid))
    for (const pod of pods) await pod.kill()
  })
  after(async () => {
    agent.destroy()
    await gateway?.stop()
  })

  /** Configures the upstream with these pods, both for requests and for the objects on which workers report. */
  const route = async (listed: readonly Backend[], differs: Partial<Upstream> = {}) => {
    const nodes = listed.map(({ node }) => ({ ...node, weight: 1 }))
    const u = { type: 'chash', hash_on: 'cookie', key: 'sid', ...differs, nodes } as const
    const kinds = { upstreams: [{ id: 'u', ...u }], routes: [{ id: 'r', upstream_id: 'u' }] }
    await gateway.configured({ u, objects: { kinds } })
  }
  const names = (of: readonly Backend[]) => new Set(of.map(({ name }) => name))

  const KEYS = {
    cookie: (session: number) => ({ cookie: `sid=s-${session}` }),
    header: (session: number) => ({ sid: `s-${session}` })
  }
  for (const hash_on of ['cookie', 'header'] as const)
    it(`by ${hash_on}: only those of the sealed pod move, and they come back to it with its end undone`, async () => {
      await route(pods, { hash_on })
      const [ending, ...others] = pods as [Backend, ...Backend[]]
      const before = await sessions.reached(KEYS[hash_on])
      expect(new Set(before).size).to.equal(pods.length)

      // The plugin keeps sessions only if their key is a cookie, which a client gets with an answer. So `keep` changes nothing here.
      const keep = hash_on === 'header' ? { keep: 60 } : {}
      for (const entry of [{ state: 'draining', ...keep }, { state: 'sealed' }] as const) {
        await gateway.barrier.put(ending.entry(entry))
        const during = await sessions.reached(KEYS[hash_on])
        expect(new Set(during), entry.state).to.deep.equal(names(others))
        const moved = before.filter((pod, session) => during[session] !== pod)
        expect(new Set(moved), entry.state).to.deep.equal(names([ending]))
      }

      await gateway.barrier.remove(ending.uid)
      expect(await sessions.reached(KEYS[hash_on])).to.deep.equal(before)
    })

  for (const [spelling, differs] of [
    ['hash_on: cookie', {}],
    ['a variable', { hash_on: 'vars', key: 'cookie_sid' }]
  ] as const)
    it(`${spelling}: a pod keeps its 1,000 sessions and gets no new one, until its seal`, async () => {
      const [first, second, ...others] = pods as [Backend, Backend, ...Backend[]]
      await route(pods, differs)
      const before = await sessions.reached(KEYS.cookie)

      await gateway.barrier.put(first.entry({ keep: 60 }))
      expect(await sessions.reached(KEYS.cookie), 'while it is listed').to.deep.equal(before)
      const began = await sessions.begin(200)
      expect(began.first, 'new sessions').not.include(first.name)
      expect(began.second, 'their second requests').not.include(first.name)

      await route([second, ...others], differs)
      expect(await sessions.reached(KEYS.cookie), 'after its owner has removed it').to.deep.equal(before)
      const later = await sessions.begin(200)
      expect([...later.first, ...later.second]).not.include(first.name)

      await gateway.barrier.put(second.entry({ keep: 60 }))
      expect(await sessions.reached(KEYS.cookie), 'when a second pod ends').to.deep.equal(before)
      expect(await began.again(), 'those that began meanwhile').not.include(first.name)
      const last = await sessions.begin(200)
      expect([...last.first, ...last.second]).not.include.members([first.name, second.name])

      await gateway.barrier.put(first.sealed)
      const after = await sessions.reached(KEYS.cookie)
      expect(after).not.include(first.name)
      const moved = before.filter((pod, session) => after[session] !== pod)
      expect(new Set(moved)).to.deep.equal(names([first]))

      const { counts, entries } = await gateway.barrier.state()
      expect(counts.kept).to.be.above(0)
      expect(entries.map(({ keep = 0 }) => keep > 0)).to.have.members([false, true])
      expect(entries.map(({ late }) => late)).to.deep.equal([0, 0])
    })

  it('are kept by a worker that had no request before the owner removed the pod', async () => {
    const [ending, ...others] = pods as [Backend, ...Backend[]]
    await route(pods)
    const before = await sessions.reached(KEYS.cookie)
    gateway.barrier.words = true
    await gateway.restart()
    await route(pods)
    await eventually('every worker has noted it', async () => {
      const { entries } = await gateway.barrier.put(ending.entry({ keep: 60 }))
      return entries.every(({ word }) => word.said === word.asked)
    })
    await route(others)
    gateway.barrier.words = false
    expect(await sessions.reached(KEYS.cookie)).to.deep.equal(before)
  })

  it('move when the time of their pod is over, also without a seal; a put of 0 ends it at once', async () => {
    const [ending] = pods as [Backend]
    await route(pods)
    const before = await sessions.reached(KEYS.cookie)
    const isKept = async () => (await gateway.barrier.inflight([ending.uid])).entries[0]?.keep !== undefined
    await gateway.barrier.put(ending.entry({ keep: 0.2 }))
    await eventually('its time is over', async () => !(await isKept()))
    expect(await sessions.reached(KEYS.cookie)).not.include(ending.name)

    await gateway.barrier.put(ending.entry({ keep: 60 }))
    expect(await isKept()).to.equal(true)
    expect(await sessions.reached(KEYS.cookie)).to.deep.equal(before)
    await gateway.barrier.put(ending.entry())
    expect(await isKept(), 'a renewal without the field').to.equal(true)
    await gateway.barrier.put(ending.entry({ keep: 0.1 }))
    const { entries } = await gateway.barrier.inflight([ending.uid])
    expect(entries[0]?.keep, 'the shorter time of another agent').to.be.above(10)
    await gateway.barrier.put(ending.entry({ keep: 0 }))
    expect(await isKept()).to.equal(false)
    expect(await sessions.reached(KEYS.cookie)).not.include(ending.name)
  })

  it('get another pod if theirs does not answer, or if its health check failed', async () => {
    const [ending, ...others] = pods as [Backend, ...Backend[]]
    await route(pods)
    const before = await sessions.reached(KEYS.cookie)
    await gateway.barrier.put(ending.entry({ keep: 60 }))
    await route(pods, { up: others.map(({ node }) => node.host) })
    const checked = await sessions.reached(KEYS.cookie)
    expect(new Set(checked)).to.deep.equal(names(others))

    await route(pods)
    expect(await sessions.reached(KEYS.cookie)).to.deep.equal(before)
    await ending.kill()
    const retried = await sessions.reached(KEYS.cookie)
    expect(new Set(retried)).to.deep.equal(names(others))
    before.forEach((pod, session) => pod === ending.name || expect(retried[session]).to.equal(pod))
  })

  it('and new ones take turns, and no request builds a ring of its own', async () => {
    const [ending] = pods as [Backend]
    await route(pods)
    await gateway.barrier.put(ending.entry({ keep: 60 }))
    const turn = async () => {
      await sessions.begin(20)
      await sessions.reached(KEYS.cookie, 20)
    }
    await turn()
    const before = await gateway.pickersMade()
    for (let i = 0; i < 5; i += 1) await turn()
    // a worker that has had no request before builds a picker for each kind of session, and one for the marked sessions
    expect((await gateway.pickersMade()) - before).to.be.at.most(3)
  })

  it('get the marker with the answer that begins them, with the attributes of their cookie', async () => {
    const [ending] = pods as [Backend]
    await route(pods)
    const asked = (cookie: string, headers: Record<string, string> = {}) =>
      send(`${gateway.url}/u?cookie=${encodeURIComponent(cookie)}`, { headers })
    expect((await asked('sid=a; Path=/app')).cookies, 'no pod ends').to.deep.equal(['sid=a; Path=/app'])
    await gateway.barrier.put(ending.entry({ keep: 60 }))

    const attributes = '; Path=/app; Domain=example.com; Max-Age=600; HttpOnly; SameSite=Strict'
    const { cookies } = await asked(`sid=a${attributes}`)
    expect(cookies).to.have.lengthOf(2)
    expect(cookies[0]).to.equal(`sid=a${attributes}`)
    expect(cookies[1])
      .to.match(/^apisix_drain_new_sid=[0-9a-f]{8}\.\d+;/)
      .and.to.include(attributes)

    for (const [why, cookie, headers] of [
      ['another cookie', 'other=a', {}],
      ['a cookie with a longer name', 'sid2=a', {}],
      ['the cookie is deleted', 'sid=; Max-Age=0', {}],
      ['a bound session gets its cookie again', 'sid=a; Path=/', { cookie: 'sid=a' }]
    ] as const)
      expect((await asked(cookie, headers)).cookies, why).to.deep.equal([cookie])

    const [marker = ''] = (cookies[1] ?? '').split(';')
    const rolling = await asked('sid=a; Max-Age=60', { cookie: `sid=a; ${marker}` })
    expect(rolling.cookies, 'a new session gets both again').to.deep.equal([
      'sid=a; Max-Age=60',
      `${marker}; Max-Age=60`
    ])
  })

  it('get a marker that is a second ahead, because the clocks of gateways differ', async () => {
    const [ending] = pods as [Backend]
    await route(pods)
    await gateway.barrier.put(ending.entry({ keep: 60, kept: 10 }))
    const now = Math.floor(Date.now() / 1000)
    const { cookies } = await send(`${gateway.url}/u?cookie=sid%3Da`)
    expect(Number(/\.(\d+)$/.exec(cookies[1] ?? '')?.[1])).to.be.above(now)
  })

  it('stay bound after requests without their cookie, and after a marker of another session', async () => {
    const [ending] = pods as [Backend]
    await route(pods)
    const before = await sessions.reached(KEYS.cookie)
    const bound = before.flatMap((pod, session) => (pod === ending.name ? [`sid=s-${session}`] : []))
    await gateway.barrier.put(ending.entry({ keep: 60 }))
    const strange = await send(`${gateway.url}/u?cookie=sid%3Dother`)
    const [, marker = ''] = strange.cookies
    for (const session of bound.slice(0, 20)) {
      const without = await send(`${gateway.url}/u?cookie=theme%3Ddark`)
      const jar = [session, ...without.cookies, marker.split(';')[0]].join('; ')
      expect((await send(`${gateway.url}/u`, { headers: { cookie: jar } })).backend).to.equal(ending.name)
    }
    const renewed = await send(`${gateway.url}/u?cookie=sid%3Dnext`, { headers: { cookie: bound[0] ?? '' } })
    expect(renewed.backend).to.equal(ending.name)
    expect(renewed.cookies, 'an answer of the pod itself').to.deep.equal(['sid=next'])
  })

  it('stay new if the application gives them another cookie, as after a login', async () => {
    const [ending] = pods as [Backend]
    await route(pods)
    await gateway.barrier.put(ending.entry({ keep: 60 }))
    const begun = await send(`${gateway.url}/u?cookie=sid%3Dguest`)
    let cookie = begun.cookies.join('; ')
    for (let login = 0; login < 40; login += 1) {
      const { backend, cookies } = await send(`${gateway.url}/u?cookie=sid%3Duser-${login}`, {
        headers: { cookie }
      })
      expect(backend, cookie).not.equal(ending.name)
      cookie = cookies.join('; ')
    }
  })

  it('are bound to a pod that ends after they began, also if others ended before', async () => {
    const [first, second] = pods as [Backend, Backend]
    await route(pods)
    await gateway.barrier.put(first.entry({ keep: 60, kept: 10 }))
    const begun = await sessions.begin(200)
    expect(begun.second).to.include(second.name).and.not.include(first.name)
    await eventually('it begins to end two seconds later', async () => {
      await gateway.barrier.remove(second.uid)
      await gateway.barrier.put(second.entry({ keep: 60 }))
      return (await begun.again()).join() === begun.second.join()
    })
    await gateway.barrier.put(first.entry({ keep: 60 }))
    expect(await begun.again(), 'a renewal changes no beginning').to.deep.equal(begun.second)
    const { second: later } = await sessions.begin(200)
    expect(later).not.include(first.name).and.not.include(second.name)
  })

  it('reach no ending pod when they are new, however many pods end', async () => {
    const more = await startAll(18)
    pods.push(...more)
    await route(pods)
    await gateway.barrier.put(...pods.slice(2).map(pod => pod.entry({ keep: 60 })))
    const begun = await sessions.begin(100)
    expect([...begun.first, ...begun.second]).to.satisfy((all: string[]) =>
      all.every(pod => names(pods.slice(0, 2)).has(pod))
    )
    const before = await sessions.reached(KEYS.cookie, 100)
    expect(new Set(before).size, 'old sessions keep their pods').to.be.above(10)
    // many markers from one client must not move the sessions of other clients to other pods
    for (let second = 0; second < 100; second += 1)
      await send(`${gateway.url}/u`, {
        headers: { cookie: `sid=x; apisix_drain_new_sid=8cdc1683.${second}` }
      })
    expect(await sessions.reached(KEYS.cookie, 100)).to.deep.equal(before)
  })

  it('of other pods still count on health checks after the owner has removed the ending pod', async () => {
    const [ending, sick, ...others] = pods as [Backend, Backend, ...Backend[]]
    await route(pods)
    const before = await sessions.reached(KEYS.cookie)
    await gateway.barrier.put(ending.entry({ keep: 60 }))
    expect(await sessions.reached(KEYS.cookie)).to.deep.equal(before)
    const up = [ending, ...others].map(({ node }) => node.host)
    await route([sick, ...others], { up })
    const during = await sessions.reached(KEYS.cookie)
    expect(during).not.include(sick.name)
    before.forEach((pod, session) => pod === sick.name || expect(during[session]).to.equal(pod))
  })
})
