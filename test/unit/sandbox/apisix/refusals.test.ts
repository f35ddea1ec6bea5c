import { expect } from 'chai'
import { adminOfEachTest } from './fixture.ts'

interface Refusal {
  /** The test of APISIX 3.18 (t/admin) that has the same request or words; or `schema`, if the refusal follows from schema_def.lua. */
  readonly from: string
  readonly ask: readonly [method: string, path: string, body: unknown]
  readonly says: string
}

const NODES = { '127.0.0.1:8080': 1 }
const node = (fields: object) => [{ host: '127.0.0.1', port: 8080, weight: 1, ...fields }]
const inline = (fields: object) => ({ uri: '/', upstream: { type: 'roundrobin', nodes: NODES }, ...fields })
const INVALID = 'invalid configuration: '
const NONE = 'object matches none of the required'
const NO_NODES = `${INVALID}property "nodes" validation failed: ${NONE}`
const NO_ID = `${INVALID}property "id" validation failed: ${NONE}`

const refuses = (from: string, method: string, path: string, body: unknown, says: string): Refusal => ({
  from,
  ask: [method, path, body],
  says
})

const REFUSALS: readonly Refusal[] = [
  refuses(
    'upstream.t 11',
    'PUT',
    'upstreams/u',
    { nodes: NODES, _service_name: 'xyz' },
    `${INVALID}additional properties forbidden, found _service_name`
  ),
  refuses(
    'schema',
    'PUT',
    'services/s',
    { upstreams: [] },
    `${INVALID}additional properties forbidden, found upstreams`
  ),
  refuses(
    'schema',
    'PUT',
    'routes/r',
    inline({ upstream: { nodes: NODES, weight: 1 } }),
    `${INVALID}property "upstream" validation failed: additional properties forbidden, found weight`
  ),
  refuses('schema', 'PUT', 'upstreams/a%20b', { nodes: NODES }, NO_ID),
  refuses('upstream4.t 4', 'PUT', 'upstreams/*invalid', { nodes: NODES }, NO_ID),
  refuses('upstream.t 9', 'PUT', 'upstreams', { id: -100, nodes: NODES }, NO_ID),
  refuses('upstream.t 10', 'PUT', 'upstreams', { id: 'invalid_id$', nodes: NODES }, NO_ID),
  refuses(
    'core/table.lua',
    'PATCH',
    'upstreams/here/tags/team',
    'shop',
    `${INVALID}additional properties forbidden, found tags`
  ),
  refuses('core/table.lua', 'PATCH', 'upstreams/here/type/x/y', 1, 'invalid sub-path: /type'),
  refuses('core/table.lua', 'PATCH', 'upstreams/here/labels/team/a/b', 1, 'invalid sub-path: /labels/team'),
  refuses('upstream.t 7', 'PUT', 'upstreams/1', { id: 3, nodes: NODES }, 'wrong upstream id'),
  refuses('admin/resource.lua', 'PATCH', 'upstreams/here', { id: 'there' }, 'wrong upstream id'),
  refuses('upstream.t 14', 'PUT', 'upstreams/u', { nodes: { '127.0.0.1:8080': '1' } }, NO_NODES),
  refuses('upstream-array-nodes.t 11', 'PUT', 'upstreams/u', { nodes: node({ weight: -100 }) }, NO_NODES),
  refuses('upstream-array-nodes.t 12', 'PUT', 'upstreams/u', { nodes: node({ port: 0 }) }, NO_NODES),
  refuses(
    'upstream-array-nodes.t 13',
    'PUT',
    'upstreams/u',
    { nodes: node({ host: '127.#.%.1' }) },
    NO_NODES
  ),
  refuses('upstream.lua', 'PUT', 'upstreams/u', { nodes: { '127.0.0.1:65536': 1 } }, 'invalid port 65536'),
  refuses('upstream.t 16', 'PUT', 'upstreams/u', { type: 'chash', nodes: NODES }, 'missing key'),
  refuses(
    'services.t 23',
    'PUT',
    'services/s',
    { upstream: { type: 'chash', hash_on: 'header', nodes: NODES } },
    'missing key'
  ),
  refuses(
    'upstream3.t 20',
    'PUT',
    'upstreams/u',
    { key: '$#^@', type: 'chash', hash_on: 'header', nodes: NODES },
    `${INVALID}failed to match pattern "^[a-zA-Z0-9-_]+$" with "$#^@"`
  ),
  refuses(
    'upstream3.t 25',
    'PUT',
    'upstreams/u',
    { hash_on: 'aabbcc', nodes: NODES },
    `${INVALID}property "hash_on" validation failed: matches none of the enum values`
  ),
  refuses(
    'upstream2.t 9',
    'PUT',
    'upstreams/u',
    { nodes: NODES, timeout: { connect: 0, send: 1, read: 1 } },
    `${INVALID}property "timeout" validation failed: property "connect" validation failed: expected 0 to be greater than 0`
  ),
  refuses(
    'upstream3.t 2',
    'PUT',
    'upstreams/u',
    { nodes: NODES, retry_timeout: -1 },
    `${INVALID}property "retry_timeout" validation failed: expected -1 to be at least 0`
  ),
  refuses(
    'upstream.t 19',
    'POST',
    'upstreams',
    {
      nodes: NODES,
      tls: { client_cert_id: 1, client_cert: 'c'.repeat(128), client_key: 'k'.repeat(64) }
    },
    `${INVALID}property "tls" validation failed: failed to validate dependent schema for "client_cert_id": ` +
      "value wasn't supposed to match schema"
  ),
  refuses(
    'upstream.lua',
    'PUT',
    'upstreams/u',
    { nodes: NODES, pass_host: 'rewrite' },
    "`upstream_host` can't be empty when `pass_host` is `rewrite`"
  ),
  refuses(
    'upstream.t 23',
    'PUT',
    'routes/r',
    inline({ upstream: { nodes: node({ host: '::1' }) } }),
    `${INVALID}IPv6 address must be enclosed with '[' and ']'`
  ),
  refuses(
    'services.t 33',
    'PUT',
    'services/s',
    { labels: { env: ['production', 'release'] } },
    `${INVALID}property "labels" validation failed: failed to validate env (matching ".*"): wrong type: expected string, got table`
  ),
  refuses(
    'plugin-configs.t 9',
    'PUT',
    'plugin_configs/1',
    { labels: 'a', plugins: {} },
    `${INVALID}property "labels" validation failed: wrong type: expected object, got string`
  ),
  refuses('global-rules.t 8', 'PUT', 'global_rules/1', {}, `${INVALID}property "plugins" is required`),
  refuses(
    'services.t 36',
    'PUT',
    'services/s',
    { name: '1'.repeat(257) },
    `${INVALID}property "name" validation failed: string too long, expected at most 256, got 257`
  ),
  refuses(
    'services.t 34',
    'PUT',
    'services/s',
    { create_time: 1_602_883_670 },
    'the property is forbidden:  create_time'
  ),
  refuses(
    'services.t 35',
    'PUT',
    'services/s',
    { upstream: { nodes: NODES, update_time: 1_602_883_670 } },
    'the property is forbidden:  upstream.update_time'
  ),
  refuses(
    'routes.t 9',
    'PUT',
    'routes/1',
    { methods: ['invalid_method'], uri: '/' },
    `${INVALID}property "methods" validation failed: failed to validate item 1: matches none of the enum values`
  ),
  refuses(
    'schema',
    'PUT',
    'routes/r',
    { uri: '/' },
    `${INVALID}${NONE}: ${[
      ...['uri', 'uris'].flatMap(uri =>
        ['plugins', 'upstream', 'upstream_id', 'service_id'].map(target => `["${target}","${uri}"]`)
      ),
      '["script","uri"]',
      '["script","uris"]'
    ].join(' or ')}`
  ),
  refuses(
    'routes3.t 14',
    'PUT',
    'routes/1',
    inline({ host: 'xxx.com', hosts: ['foo.com'] }),
    'only one of host or hosts is allowed'
  ),
  refuses(
    'routes3.t 4',
    'PUT',
    'routes/1',
    inline({ remote_addr: '127.0.0.33333' }),
    `${INVALID}property "remote_addr" validation failed: ${NONE}`
  ),
  refuses(
    'routes2.t 17',
    'PUT',
    'routes/1',
    inline({ plugin_config_id: 'not_found' }),
    'failed to fetch plugin config info by plugin config id [not_found], response code: 404'
  ),
  refuses(
    'routes.t 17',
    'POST',
    'routes',
    { id: 1, plugins: {}, uri: '/' },
    'wrong route id, do not need it'
  ),
  refuses(
    'consumers.t 6',
    'PUT',
    'consumers',
    { desc: 'a consumer without a name' },
    `${INVALID}property "username" is required`
  )
]

describe('sandbox/apisix refuses what APISIX refuses, in its words', () => {
  const admin = adminOfEachTest()
  const { ask } = admin

  beforeEach(() =>
    ask('PUT', 'upstreams/here', { type: 'roundrobin', nodes: NODES, labels: { team: 'shop' } })
  )

  for (const { from, ask: asked, says } of REFUSALS)
    it(`${asked[0]} ${asked[1]}: ${says.slice(0, 100)} (${from})`, async () => {
      const before = admin.store.revision
      const { status, body } = await ask(...asked)
      expect([status, JSON.parse(body)]).to.deep.equal([400, { error_msg: says }])
      // A POST takes an id from the store only after the check of its body, so the revision must be the same.
      expect(admin.store.revision, 'nothing was written').to.equal(before)
    })

  it('refuses a body of more than 1.5 MiB (routes4.t 16)', async () => {
    const route = inline({ desc: 'x'.repeat(1.5 * 1024 * 1024) })
    const size = JSON.stringify(route).length
    const { status, body } = await ask('PUT', 'routes/1', route)
    expect([status, body]).to.deep.equal([
      400,
      `{"error_msg":"invalid request body: request size ${size} is greater than the maximum size 1572864 allowed"}\n`
    ])
  })

  it('does not create consumers by POST (consumers.t: `kind` is single)', async () => {
    const { status, body } = await ask('POST', 'consumers', { username: 'jack' })
    expect([status, JSON.parse(body)]).to.deep.equal([
      405,
      { error_msg: 'not supported `POST` method for consumer' }
    ])
  })

  it('takes an array as a body: an empty one changes nothing, a filled one has the fields 1, 2, …', async () => {
    expect((await ask('PATCH', 'upstreams/here', [])).status).to.equal(200)
    expect(admin.store.get('/apisix/upstreams/here')?.value['nodes']).to.deep.equal(NODES)
    expect((await ask('PUT', 'services/s', [])).status).to.equal(201)
    const { status, body } = await ask('PATCH', 'upstreams/here', ['a'])
    expect([status, JSON.parse(body)]).to.deep.equal([
      400,
      { error_msg: `${INVALID}additional properties forbidden, found 1` }
    ])
  })

  it('accepts valid objects: every field of a controller, health checks, standby nodes, several hosts', async () => {
    const checks = {
      active: { http_path: '/', healthy: { interval: 1, successes: 1 }, unhealthy: { http_statuses: [500] } }
    }
    const upstream = {
      name: 'shop_web_80',
      desc: 'd',
      labels: { a: 'b' },
      type: 'chash',
      key: 'remote_addr',
      checks,
      timeout: { connect: 1, send: 1, read: 0.5 },
      nodes: [{ host: '10.0.0.1', port: 80, weight: 0, priority: -1 }]
    }
    const got = [
      await ask('PUT', 'upstreams/u', upstream),
      await ask('PUT', 'services/s', { name: 's', upstream, hosts: ['a.example', '*.b.example'] }),
      await ask('PUT', 'routes/r', {
        uris: ['/a', '/b'],
        service_id: 's',
        remote_addrs: ['10.0.0.0/8', '::1']
      }),
      await ask('PUT', 'consumers', { username: 'jack', plugins: {} })
    ]
    expect(got.map(({ status, body }) => [status, status === 201 ? '' : body])).to.deep.equal(
      got.map(() => [201, ''])
    )
  })
})
