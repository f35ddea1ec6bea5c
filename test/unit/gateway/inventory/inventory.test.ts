import { expect } from 'chai'

import type { AdminApi, AdminObject, AdminPage } from '../../../../agent/gateway/apisix/admin-api.ts'
import { createInventory, type Inventory } from '../../../../agent/gateway/inventory/inventory.ts'
import type { Resource } from '../../../../agent/rules/plan/holder.ts'
import { silent, startAdmin, until } from '../../../build/apisix.ts'
import { memoryLog } from '../../../build/serve.ts'
import { manualClock, type ManualClock } from '../../../build/manual-clock.ts'

const nodes = (...keys: string[]) => ({
  type: 'roundrobin',
  nodes: Object.fromEntries(keys.map(k => [k, 1]))
})

describe('inventory', () => {
  let apisix: Awaited<ReturnType<typeof startAdmin>>
  let inventory: Inventory
  let clock: ManualClock

  const begin = (admin: Pick<AdminApi, 'list' | 'pageSize'> = apisix.client): Inventory =>
    (inventory = createInventory({ lists: { open: async () => admin }, clock, log: silent, everyMs: 60_000 }))
  const listings = () => apisix.requests.filter(r => r.includes('/upstreams?page=1&')).length
  const keys = (host: string) => inventory.byHost(host).map(h => h.key)

  beforeEach(async () => {
    clock = manualClock()
    apisix = await startAdmin({ pageSize: 10 })
  })
  afterEach(async () => {
    await inventory.stop()
    await apisix.close()
  })

  it('lists every holder, by key and by host', async () => {
    apisix.put('upstreams', 'web', nodes('10.0.0.1:80', '10.0.0.2:80'))
    apisix.put('routes', 'r', { uri: '/', upstream: nodes('10.0.0.1:81', '[fd00::7]:80') })
    apisix.put('routes', 'plain', { uri: '/x', upstream_id: 'web' })
    begin()
    expect(inventory.readAt()).to.equal(undefined)
    await inventory.refresh()
    expect([...inventory.holders().keys()]).to.have.members(['upstreams/web', 'routes/r/upstream'])
    expect(keys('10.0.0.1')).to.have.members(['upstreams/web', 'routes/r/upstream'])
    expect(keys('fd00::7')).to.deep.equal(['routes/r/upstream'])
    expect(keys('10.0.0.9')).to.deep.equal([])
    expect(inventory.problem()).to.equal('')
  })

  it('asks for stream routes once a minute while stream mode is off (R6)', async () => {
    await apisix.close()
    apisix = await startAdmin({ stream: false })
    begin()
    const asked = () => apisix.requests.filter(request => request.includes('/stream_routes')).length
    for (const _ of [1, 2, 3]) await inventory.refresh()
    expect({ asked: asked(), readAt: inventory.readAt() }).to.deep.equal({ asked: 1, readAt: clock.now() })
    clock.advance(60_000)
    await inventory.refresh()
    expect(asked()).to.equal(2)
  })

  it('misses nothing when an object is deleted between two pages', async () => {
    for (let i = 0; i < 25; i++) apisix.put('upstreams', `u${i}`, nodes('10.0.0.1:80'))
    let once = true
    begin({
      pageSize: 10,
      list: async (resource, page, signal) => {
        const answer = await apisix.client.list(resource, page, signal)
        if (resource === 'upstreams' && page === 1 && once) {
          once = false
          apisix.remove('upstreams', 'u3')
        }
        return answer
      }
    })
    await inventory.refresh()
    const left = Array.from({ length: 25 }, (_, i) => `upstreams/u${i}`).filter(key => key !== 'upstreams/u3')
    expect(keys('10.0.0.1')).to.have.members(left)
  })

  for (const [total, asked] of [
    [1e9, 1],
    [1e5, 6]
  ] as const)
    it(`ends a listing whose total is ${total} with a failure, after ${asked} requests at most`, async () => {
      let requests = 0
      const object: AdminObject = { resource: 'upstreams', id: 'a', value: nodes('10.0.0.1:80'), revision: 1 }
      const objects = (page: number) => (page === 1 ? [object] : [])
      const list = (resource: Resource, page: number): Promise<AdminPage> => {
        if (resource !== 'upstreams') return Promise.resolve({ total: 0, objects: [] })
        requests += 1
        if (requests > 100) throw new Error('it does not end')
        return Promise.resolve({ total, objects: objects(page) })
      }
      begin({ pageSize: 10, list })
      await inventory.refresh()
      expect(inventory.problem()).to.contain('listing upstreams')
      expect(inventory.readAt()).to.equal(undefined)
      expect(requests).to.equal(asked)
    })

  it('reports when the listing began, not when it ended', async () => {
    begin({
      pageSize: 10,
      list: async (...all) => {
        clock.advance(100)
        return apisix.client.list(...all)
      }
    })
    const before = clock.now()
    await inventory.refresh()
    expect(inventory.readAt()).to.equal(before)
  })

  it('answers a call made during a listing with the next listing, shared by all such calls', async () => {
    begin()
    const first = inventory.refresh()
    const [second, third] = [inventory.refresh(), inventory.refresh()]
    apisix.put('upstreams', 'late', nodes('10.0.0.1:80'))
    await first
    await Promise.all([second, third])
    expect(keys('10.0.0.1')).to.deep.equal(['upstreams/late'])
    expect(listings()).to.equal(2)
  })

  it('is not stalled by a listener that asks for a refresh at every change', async () => {
    begin()
    inventory.onChange(() => void inventory.refresh())
    const first = inventory.refresh()
    const second = inventory.refresh()
    await first
    await second
    expect(listings()).to.be.within(2, 3)
  })

  it('lists again by itself, sooner after a problem', async () => {
    begin()
    inventory.start()
    await until('the first listing', () => inventory.readAt() !== undefined)
    clock.advance(60_000)
    await until('the second listing', () => listings() === 2 && inventory.readAt() === clock.now())
    const lift = apisix.faults.inject({
      fault: { kind: 'status', status: 500 },
      path: '/apisix/admin/routes'
    })
    clock.advance(60_000)
    await until('the problem', () => inventory.problem() !== '' && clock.pending > 0)
    lift()
    clock.advance(1000)
    await until('the problem is gone', () => inventory.problem() === '')
  })

  it('keeps the last state of a collection that cannot be listed, and reports it', async () => {
    apisix.put('upstreams', 'web', nodes('10.0.0.1:80'))
    apisix.put('services', 's', { upstream: nodes('10.0.0.2:80') })
    begin()
    await inventory.refresh()
    const before = inventory.readAt()
    apisix.put('services', 's', { upstream: nodes('10.0.0.3:80') })
    apisix.faults.inject({ fault: { kind: 'status', status: 500 }, path: '/apisix/admin/upstreams' })
    clock.advance(5)
    await inventory.refresh()
    expect(keys('10.0.0.1')).to.deep.equal(['upstreams/web'])
    expect(keys('10.0.0.3')).to.deep.equal(['services/s/upstream'])
    expect(inventory.readAt()).to.equal(before)
    expect(inventory.problem()).to.match(/^upstreams: GET .* -> 500/)
  })

  it('reports a failure of all collections once, and logs it once a minute without a stack', async () => {
    const { log, lines } = memoryLog()
    apisix.faults.inject({ fault: { kind: 'status', status: 500 }, path: '/apisix/admin/' })
    const lists = { open: async () => apisix.client }
    inventory = createInventory({ lists, clock, log, everyMs: 60_000 })
    for (let i = 0; i < 5; i++) await inventory.refresh()
    expect(inventory.problem()).to.match(/^upstreams, services, .*global_rules: GET .* -> 500/)
    expect(inventory.problem().match(/GET/g)).to.have.length(1)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.deep.include({ level: 'warn', why: inventory.problem() }).and.not.have.property('err')
    clock.advance(60_000)
    await inventory.refresh()
    expect(lines).to.have.length(2)
  })

  it('is as old as its document, which was read before the lists are', async () => {
    const open = async () => (clock.advance(5), apisix.client)
    inventory = createInventory({ lists: { open }, clock, log: silent, everyMs: 60_000 })
    const before = clock.now()
    await inventory.refresh()
    expect(inventory.readAt()).to.equal(before)
  })

  it('drops objects that are no longer listed', async () => {
    apisix.put('upstreams', 'web', nodes('10.0.0.1:80'))
    begin()
    await inventory.refresh()
    apisix.remove('upstreams', 'web')
    clock.advance(1)
    await inventory.refresh()
    expect(inventory.holders().size).to.equal(0)
    expect(keys('10.0.0.1')).to.deep.equal([])
  })

  describe('an object that is learned during a listing', () => {
    const object = (revision: number, ...of: string[]): AdminObject => ({
      resource: 'upstreams',
      id: 'web',
      value: nodes(...of),
      revision
    })
    /** Plays a listing that APISIX answers before `happens`, and that arrives after it. */
    const overtaken = async (happens: () => void, listed: readonly AdminObject[]) => {
      begin({
        pageSize: 10,
        list: async (resource: Resource): Promise<AdminPage> => {
          if (resource !== 'upstreams') return { total: 0, objects: [] }
          clock.advance(1)
          happens()
          return { total: listed.length, objects: listed }
        }
      })
      await inventory.refresh()
    }

    const learn = () => inventory.learn(object(7, '10.0.0.2:80'))
    const listing = object(6, '10.0.0.1:80', '10.0.0.2:80')
    const cases: readonly [what: string, happens: () => void, listed: AdminObject[], last: string[]][] = [
      ['is newer than the listing', learn, [listing], ['upstreams/web']],
      ['stays even if the listing does not have it yet', learn, [], ['upstreams/web']],
      ['stays removed even if the listing has it', () => inventory.forget('upstreams', 'web'), [listing], []]
    ]
    for (const [what, happens, listed, last] of cases)
      it(what, async () => {
        await overtaken(happens, listed)
        expect([keys('10.0.0.1'), keys('10.0.0.2')]).to.deep.equal([[], last])
      })
  })

  it('is reported once', async () => {
    apisix.put('upstreams', 'web', nodes('10.0.0.1:80'))
    begin()
    let told = 0
    inventory.onChange(() => told++)
    const read = await apisix.client.get('upstreams', 'web')
    inventory.learn(read)
    inventory.learn(read)
    expect(told).to.equal(1)
    inventory.forget('upstreams', 'web')
    inventory.forget('upstreams', 'web')
    expect(told).to.equal(2)
  })

  it('ends a listing that hangs, and answers its callers', async () => {
    apisix.faults.inject({ fault: { kind: 'hang' } })
    begin()
    const both = Promise.all([inventory.refresh(), inventory.refresh()])
    await inventory.stop()
    await both
    await inventory.refresh()
    expect(inventory.readAt()).to.equal(undefined)
  })
})
