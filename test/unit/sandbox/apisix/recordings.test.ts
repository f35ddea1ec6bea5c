import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { serveAdminApi } from '../../../../sandbox/apisix/admin-api.ts'
import type { Api } from '../../../../sandbox/apisix/api-server.ts'
import { serveControlApi } from '../../../../sandbox/apisix/control-api.ts'
import { serveStandaloneApi } from '../../../../sandbox/apisix/standalone-api.ts'
import { createStore, type Store } from '../../../../sandbox/apisix/store.ts'
import { createWorker } from '../../../../sandbox/apisix/worker.ts'

interface Exchange {
  readonly name: string
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Record<string, string>
    readonly body?: unknown
  }
  readonly response: {
    readonly status: number
    readonly headers: Record<string, string>
    readonly body: unknown
  }
}

const read = (name: string): Exchange[] => {
  const file = new URL(`../../../recordings/${name}.json`, import.meta.url)
  const { exchanges } = JSON.parse(readFileSync(file, 'utf8')) as { exchanges: Exchange[] }
  return exchanges
}

const KEY = 'the-key-of-this-test'

/** Replaces times, which vary (see the recording's note). Indexes and ids do not vary, because the store starts in the same state. */
const comparable = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (name, value: unknown) =>
      /^(create|update)_time$|^x-last-modified$/i.test(name) ? 'a time' : value
    )
  )

/** The headers that the tests compare, if a recording has them. */
const RECORDED = ['content-type', 'x-api-version', 'x-digest', 'x-last-modified']

const asBody = (text: string, contentType: string): unknown => {
  if (!contentType.startsWith('application/json')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const replay = async (url: string, { request, response }: Exchange): Promise<void> => {
  const { body } = request
  const answer = await fetch(url + request.path, {
    method: request.method,
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, value.replace('{adminKey}', KEY)])
    ),
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(5000)
  })
  const contentType = answer.headers.get('content-type') ?? ''
  const headers = Object.fromEntries(
    RECORDED.flatMap(name => {
      const value = answer.headers.get(name)
      return value === null ? [] : [[name, value]]
    })
  )
  const got = { status: answer.status, headers, body: asBody(await answer.text(), contentType) }
  expect(comparable(got)).to.deep.equal(comparable(response))
}

/** Replays the recordings of one mode. `exchanges`: the number of calls to the Admin API and to the Control API. */
function replayed(
  mode: 'etcd' | 'standalone',
  store: Store,
  exchanges: readonly [admin: number, control: number]
) {
  const standalone = mode === 'standalone'
  const worker = createWorker({ id: 0, pid: 1, store, applyDelay: () => 0 })
  let admin: Api
  let control: Api

  before(async () => {
    const serveAdmin = standalone ? serveStandaloneApi : serveAdminApi
    admin = await serveAdmin({ store, host: '127.0.0.1', port: 0, adminKey: KEY })
    control = await serveControlApi({ host: '127.0.0.1', port: 0, accept: () => worker, standalone })
  })

  after(async () => {
    await admin.close()
    await control.close()
    worker.kill()
    store.close()
  })

  const adminApi = read(`admin-api-${mode}`)
  const controlApi = read(`control-api-${mode}`)

  for (const exchange of adminApi) it(`Admin API: ${exchange.name}`, () => replay(admin.url, exchange))
  for (const exchange of controlApi) it(`Control API: ${exchange.name}`, () => replay(control.url, exchange))

  it('replays all of them', () => {
    expect([adminApi.length, controlApi.length]).to.deep.equal(exchanges)
  })
  return { worker, url: () => admin.url }
}

describe('sandbox/apisix: replays the answers of a real APISIX 3.18', () => {
  replayed('etcd', createStore({ revision: 4105 }), [52, 11])
})

describe('sandbox/apisix: replays the answers of a real APISIX 3.18 in API-driven standalone mode', () => {
  const { worker, url } = replayed('standalone', createStore(), [17, 2])

  it('an item whose modifiedIndex did not change is listed, and not applied by the workers', async () => {
    const upstreams = [{ id: 'u1', modifiedIndex: 1003, nodes: [{ host: '127.0.0.9', port: 80, weight: 1 }] }]
    const { status } = await fetch(`${url()}/apisix/admin/configs`, {
      method: 'PUT',
      headers: { 'X-API-KEY': KEY, 'X-Digest': 'd7' },
      body: JSON.stringify({ upstreams_conf_version: 1004, upstreams }),
      signal: AbortSignal.timeout(5000)
    })
    expect(status).to.equal(202)
    const nodes = worker.config.get('upstreams', 'u1')?.value['nodes']
    expect(nodes).to.have.length(2)
  })
})
