import { expect } from 'chai'
import type { Fault } from '../../../../sandbox/apisix/faults.ts'
import { adminOfEachTest, eventually, KEY, type Reply } from './fixture.ts'

describe('sandbox/apisix Admin API', () => {
  const admin = adminOfEachTest()
  const { ask } = admin
  const nodes = (): unknown => admin.store.get('/apisix/upstreams/u')?.value['nodes']
  const putMap = (map: Record<string, number>): Promise<Reply> => ask('PUT', 'upstreams/u', { nodes: map })

  it('loses none of 50 concurrent removals: a conflicting write gets 503 and is not written', async () => {
    const keys = Array.from({ length: 50 }, (_, index) => `10.0.0.${index + 1}:80`)
    await putMap(Object.fromEntries(keys.map(key => [key, 1])))
    const before = admin.store.revision
    const replies = await Promise.all(
      keys.map(key => ask('PATCH', 'upstreams/u', { nodes: { [key]: null } }))
    )
    const won = keys.filter((_, index) => replies[index]?.status === 200)
    const lost = replies.filter(reply => reply.status === 503)
    expect(won.length, 'winners').to.be.greaterThan(0)
    expect(lost.length, 'losers').to.be.greaterThan(0)
    expect(won.length + lost.length).to.equal(50)
    for (const { body } of lost)
      expect(JSON.parse(body)).to.deep.equal({ error_msg: 'value changed before overwritten' })
    expect(Object.keys(nodes() as object).sort()).to.deep.equal(keys.filter(key => !won.includes(key)).sort())
    expect(admin.store.revision - before).to.equal(won.length)
  })

  it('keeps the time of creation over a PUT', async () => {
    admin.store.put('/apisix/upstreams/u', { id: 'u', nodes: { a: 1 }, create_time: 5 })
    await putMap({ b: 1 })
    expect(admin.store.get('/apisix/upstreams/u')?.value['create_time']).to.equal(5)
  })

  it('applies a write with If-Match, and answers 412 all the same', async () => {
    await putMap({ a: 1, b: 1 })
    const reply = await ask('PATCH', 'upstreams/u', { nodes: { a: null } }, { 'if-match': '"1"' })
    expect(reply.status).to.equal(412)
    expect(reply.body).to.contain('412 Precondition Failed')
    expect(nodes()).to.deep.equal({ b: 1 })
  })

  it('answers 503 at once while etcd is down, and not at all while etcd is black-holed', async () => {
    await putMap({ a: 1 })
    admin.store.health = 'down'
    const reply = await ask('GET', 'upstreams/u')
    expect([reply.status, JSON.parse(reply.body)]).to.deep.equal([
      503,
      { error_msg: 'has no healthy etcd endpoint available' }
    ])
    admin.store.health = 'black-holed'
    const outcome = await fetch(`${admin.api.url}/apisix/admin/upstreams/u`, {
      headers: { 'x-api-key': KEY },
      signal: AbortSignal.timeout(100)
    }).catch((err: Error) => err.name)
    expect(outcome).to.equal('TimeoutError')
  })

  it('removes an object when its ttl is over', async () => {
    await ask('PUT', 'upstreams/u?ttl=0.05', { nodes: { a: 1 } })
    expect(nodes()).to.deep.equal({ a: 1 })
    await eventually(() => nodes() === undefined)
  })

  it('deletes an upstream in use only with force', async () => {
    await putMap({ a: 1 })
    await ask('PUT', 'routes/r', { uri: '/', upstream_id: 'u' })
    expect((await ask('DELETE', 'upstreams/u')).status).to.equal(400)
    const reply = await ask('DELETE', 'upstreams/u?force=true')
    expect([reply.status, JSON.parse(reply.body)]).to.deep.equal([
      200,
      { key: '/apisix/upstreams/u', deleted: '1' }
    ])
    expect((await ask('DELETE', 'upstreams/u?force=true')).status).to.equal(404)
  })

  it('pages only with both parameters, sorts pages by age, and writes a page past the end as a map', async () => {
    for (let index = 0; index < 12; index += 1) await ask('PUT', `upstreams/u${11 - index}`, { nodes: {} })
    const list = async (query: string): Promise<{ list: { key: string }[]; total: number }> =>
      JSON.parse((await ask('GET', `upstreams?${query}`)).body)
    // Without both parameters, the answer has all objects in the order of their keys, as etcd returns them.
    for (const query of ['page=1', 'page_size=10', '']) {
      const keys = (await list(query)).list.map(({ key }) => key)
      expect(keys, query).to.have.length(12)
      expect(keys, query).to.deep.equal(keys.toSorted())
    }
    expect((await list('page=0&page_size=10')).list[0]?.key).to.equal('/apisix/upstreams/u11')
    expect((await list('page=2&page_size=10')).list.length).to.equal(2)
    expect(await list('page=3&page_size=10')).to.deep.equal({ list: {}, total: 12 })
    expect((await list('label=nobody&page=1&page_size=10')).list).to.deep.equal({})
  })

  it('finds by name as a pattern, and by label as a key', async () => {
    await ask('PUT', 'upstreams/a', { name: 'shop-a', labels: { team: 'shop' }, nodes: {} })
    await ask('PUT', 'upstreams/b', { name: 'bank-b', nodes: {} })
    const total = async (query: string): Promise<number> =>
      (JSON.parse((await ask('GET', `upstreams?${query}`)).body) as { total: number }).total
    expect([
      await total('name=sho'),
      await total('label=team'),
      await total('label=team:shop')
    ]).to.deep.equal([1, 1, 0])
  })

  describe('faults', () => {
    const removeA = (): Promise<Reply> => ask('PATCH', 'upstreams/u', { nodes: { a: null } })
    const meet = async (fault: Fault): Promise<Reply | string> => {
      await putMap({ a: 1, b: 1 })
      admin.api.faults.inject({ fault, times: 1, method: 'PATCH' })
      return Promise.race([
        removeA().catch((err: NodeJS.ErrnoException) => err.code ?? err.message),
        new Promise<string>(resolve => setTimeout(resolve, 80, 'no answer').unref())
      ])
    }

    it('applied but timed out: no answer, and it is done', async () => {
      expect([await meet({ kind: 'applied-but-timed-out' }), nodes()]).to.deep.equal(['no answer', { b: 1 }])
    })

    it('slow: applied late', async () => {
      const began = performance.now()
      expect(((await meet({ kind: 'slow', ms: 40 })) as Reply).status).to.equal(200)
      expect(performance.now() - began).to.be.greaterThan(38)
    })

    it('closed in the middle of the body: applied', async () => {
      const reply = (await meet({ kind: 'close-mid-body' })) as Reply
      expect([reply.status, reply.truncated, nodes()]).to.deep.equal([200, true, { b: 1 }])
    })

    it('reset: nothing applied', async () => {
      expect([await meet({ kind: 'reset' }), nodes()]).to.deep.equal(['ECONNRESET', { a: 1, b: 1 }])
    })
  })
})
