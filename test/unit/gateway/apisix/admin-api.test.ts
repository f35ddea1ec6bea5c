import type { RequestListener } from 'node:http'
import { expect } from 'chai'
import { CodedError, type ErrorCode } from '../../../../agent/base/errors.ts'
import { createAdminApi } from '../../../../agent/gateway/apisix/admin-api.ts'
import { startAdmin, startRaw } from '../../../build/apisix.ts'

const failure = async (work: Promise<unknown>): Promise<CodedError> => {
  const error = await work.then(
    () => new Error('did not fail'),
    (error: unknown) => error
  )
  if (!(error instanceof CodedError)) throw error
  return error
}

describe('admin-api', () => {
  let apisix: Awaited<ReturnType<typeof startAdmin>>
  beforeEach(async () => {
    apisix = await startAdmin({ stream: false, pageSize: 10 })
  })
  afterEach(() => apisix.close())

  it('gets, patches and puts objects; only a read returns a revision', async () => {
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes: { 'a:80': 1, 'b:80': 1 } })
    const read = await apisix.client.get('upstreams', 'web')
    expect(read).to.deep.include({ resource: 'upstreams', id: 'web', revision: 101 })
    const patched = await apisix.client.patch('upstreams', 'web', { nodes: { 'a:80': null } })
    expect(patched.revision).to.equal(0)
    expect(patched.value.nodes).to.deep.equal({ 'b:80': 1 })
    await apisix.client.put('upstreams', 'web', { type: 'roundrobin', nodes: { 'c:80': 1 } })
    expect(apisix.nodes('web')).to.deep.equal({ 'c:80': 1 })
  })

  it('keeps requests inside the collection, whatever the object is called', async () => {
    const hostile = [
      'a/../../../v1/schema',
      '../routes',
      'a?x=1',
      'a#b',
      '%2e%2e',
      'a b',
      '..%2froutes',
      '\r\nX: y'
    ]
    for (const id of hostile) {
      apisix.requests.length = 0
      await apisix.client.patch('upstreams', id, {}).catch(() => {})
      expect(apisix.requests, id).to.deep.equal([`PATCH /apisix/admin/upstreams/${encodeURIComponent(id)}`])
    }
    apisix.requests.length = 0
    for (const id of ['.', '..']) {
      expect(await failure(apisix.client.put('upstreams', id, {}))).to.have.property('code', 'ADMIN_REFUSED')
    }
    expect(apisix.requests).to.deep.equal([])
  })

  it('lists page by page, and reads an empty page as empty', async () => {
    for (let i = 0; i < 12; i++)
      apisix.put('upstreams', `u${i}`, { type: 'roundrobin', nodes: { 'a:80': 1 } })
    const first = await apisix.client.list('upstreams', 1)
    const second = await apisix.client.list('upstreams', 2)
    expect([first.total, first.objects.length, second.objects.length]).to.deep.equal([12, 10, 2])
    expect(apisix.requests[0]).to.equal('GET /apisix/admin/upstreams?page=1&page_size=10')
    expect(await apisix.client.list('upstreams', 7)).to.deep.equal({ total: 12, objects: [] })
    expect(await apisix.client.list('services', 1)).to.deep.equal({ total: 0, objects: [] })
  })

  it('reads "stream mode is disabled" and an unknown collection as an empty list', async () => {
    for (const kind of ['stream_routes', 'nonsense' as 'routes'] as const)
      expect(await apisix.client.list(kind, 1)).to.deep.equal({ total: 0, objects: [], isOff: true })
  })

  it('reads the key for every request, and never sends If-Match', async () => {
    const seen: unknown[] = []
    let key = 'one'
    const raw = await startRaw((request, response) => {
      seen.push(request.headers['x-api-key'], request.headers['if-match'])
      response.end('{"total":0,"list":{}}')
    })
    const client = createAdminApi({ url: `${raw.url}/`, key: () => key, timeoutMs: 20_000, pageSize: 500 })
    expect(await client.list('routes', 1)).to.deep.equal({ total: 0, objects: [] })
    key = 'two'
    await client.list('routes', 1)
    expect(seen).to.deep.equal(['one', undefined, 'two', undefined])
    expect(raw.connections(), 'one connection, used again').to.equal(1)
    client.close()
    await raw.close()
  })

  it('detects the mode', async () => {
    expect(await apisix.client.standalone()).to.equal(undefined)
    const denied = await startAdmin({ key: () => 'wrong' })
    expect((await failure(denied.client.standalone())).code).to.equal('ADMIN_DENIED')
    await denied.listener.close()
    expect((await failure(denied.client.standalone())).message).to.contain('apisix.admin.url')
    await denied.close()
    // The second is a service behind a catch-all route of the proxy port.
    for (const [body, isDocument] of [
      ['{"upstreams_conf_version":0}', true],
      ['{"hello":"world"}', false]
    ] as const) {
      const raw = await startRaw((_, response) => response.end(body))
      const client = createAdminApi({ url: raw.url, key: () => '', timeoutMs: 20_000, pageSize: 500 })
      expect(await client.standalone().then(Boolean, () => false)).to.equal(isDocument)
      client.close()
      await raw.close()
    }
  })

  describe('errors', () => {
    const answers: [name: string, code: ErrorCode, answer: RequestListener][] = [
      ['401', 'ADMIN_DENIED', (_, r) => r.writeHead(401).end('{"error_msg":"failed to check token"}')],
      ['403 page', 'ADMIN_DENIED', (_, r) => r.writeHead(403).end('<html>')],
      ['404 of the object', 'ADMIN_GONE', (_, r) => r.writeHead(404).end('{"message":"Key not found"}')],
      ['404 page of a proxy', 'ADMIN_GARBLED', (_, r) => r.writeHead(404).end('<html>')],
      ['409', 'ADMIN_CONFLICT', (_, r) => r.writeHead(409).end('{}')],
      ['412', 'ADMIN_PRECONDITION', (_, r) => r.writeHead(412).end('<html>')],
      ['400', 'ADMIN_REFUSED', (_, r) => r.writeHead(400).end('{"error_msg":"invalid configuration: x"}')],
      ['429', 'ADMIN_UNAVAILABLE', (_, r) => r.writeHead(429).end()],
      ['500 page', 'ADMIN_UNAVAILABLE', (_, r) => r.writeHead(500).end('<html>')],
      [
        '503 of etcd',
        'ADMIN_UNAVAILABLE',
        (_, r) => r.writeHead(503).end('{"error_msg":"has no healthy etcd endpoint"}')
      ],
      [
        '503 of a conflict',
        'ADMIN_CONFLICT',
        (_, r) => r.writeHead(503).end('{"error_msg":"value changed before overwritten"}')
      ],
      ['302 to a login', 'ADMIN_GARBLED', (_, r) => r.writeHead(302, { location: '/login' }).end()],
      ['200 page', 'ADMIN_GARBLED', (_, r) => r.end('<html>login</html>')],
      ['200 empty', 'ADMIN_GARBLED', (_, r) => r.end()],
      ['200 other JSON', 'ADMIN_GARBLED', (_, r) => r.end('{"value":7}')],
      ['hang', 'ADMIN_TIMEOUT', () => {}],
      [
        'body that never ends',
        'ADMIN_TIMEOUT',
        (_, r) => {
          r.write('{')
          const drip = setInterval(() => r.write(' '), 20)
          r.once('close', () => clearInterval(drip))
        }
      ],
      [
        'body cut off',
        'ADMIN_UNREACHABLE',
        (_, r) => (r.writeHead(200, { 'content-length': 99 }).write('{'), r.destroy())
      ],
      ['closed connection', 'ADMIN_UNREACHABLE', request => request.socket.destroy()],
      ['too large', 'ADMIN_TOO_LARGE', (_, r) => r.end(JSON.stringify({ value: 'x'.repeat(5000) }))]
    ]
    for (const [name, code, answer] of answers)
      it(`${name} -> ${code}`, async () => {
        const raw = await startRaw(answer)
        const client = createAdminApi({
          url: raw.url,
          key: () => 'secret-key',
          timeoutMs: code === 'ADMIN_TIMEOUT' ? 150 : 20_000,
          pageSize: 500,
          maxBytes: 4000
        })
        const error = await failure(client.patch('upstreams', 'web', { nodes: { 'a:80': null } }))
        expect(error.code).to.equal(code)
        expect(error.message).to.contain(`PATCH ${raw.url}/apisix/admin/upstreams/web`)
        expect(JSON.stringify([error, error.message, error.stack, error.cause])).not.to.contain('secret-key')
        client.close()
        await raw.close()
      })

    it('quotes the reply of APISIX, its status and the remedy', async () => {
      const error = await failure(apisix.client.patch('upstreams', 'web', { nodes: 'x' }))
      expect(error.message).to.match(
        /PATCH .*\/upstreams\/web -> 404 "Key not found": the object does not exist/
      )
    })

    it('stops when the caller aborts', async () => {
      apisix.faults.inject({ fault: { kind: 'hang' } })
      const abort = new AbortController()
      const asked = failure(apisix.client.get('upstreams', 'web', abort.signal))
      abort.abort()
      expect(await asked).to.include({ code: 'ABORTED' })
    })

    it('hides the user and password in the address', async () => {
      const client = createAdminApi({
        url: 'http://user:pw@127.0.0.1:1',
        key: () => 'k',
        timeoutMs: 20_000,
        pageSize: 500
      })
      expect((await failure(client.get('upstreams', 'web'))).message).not.to.contain('pw')
    })
  })
})
