import { expect } from 'chai'
import {
  examine,
  formatDiagnosis,
  type Step,
  doctorChecks,
  type DoctorClients
} from '../../../agent/doctor/wire-checks.ts'
import { fail, ok, warn, type Check } from '../../../agent/doctor/checks/cluster-lists.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock } from '../../../agent/base/clock.ts'
import { config } from '../../build/config.ts'

const steps = (checks: Readonly<Record<string, Check>>): Step[] =>
  Object.entries(checks).map(([name, check]) => ({ name, check }))

describe('doctor: the examination', () => {
  it('runs all checks in parallel and keeps their order', async () => {
    const clock = manualClock()
    const first = Promise.withResolvers<void>()
    const diagnosis = examine(
      steps({
        slow: async () => (await first.promise, [ok('slow', 'in the end')]),
        quick: async () => (first.resolve(), [warn('quick', 'almost', 'do this')])
      }),
      clock
    )
    const { healthy, findings } = await diagnosis
    expect(healthy).to.equal(true)
    expect(findings.map(finding => finding.name)).to.deep.equal(['slow', 'quick'])
    expect(clock.pending).to.equal(0)
  })

  it('ends a check that takes too long, and survives one that throws', async () => {
    const clock = manualClock()
    let aborted: AbortSignal | undefined
    const diagnosis = examine(
      steps({
        stuck: signal => ((aborted = signal), new Promise(() => {})),
        broken: () => Promise.reject(new Error('a bug'))
      }),
      clock
    )
    await new Promise(resolve => setImmediate(resolve))
    clock.advance(30_000)
    expect(
      (await diagnosis).findings.map(({ name, level, what }) => `${level} ${name}: ${what}`)
    ).to.deep.equal(['fail stuck: no answer within 30 s', 'fail broken: cannot be checked: a bug'])
    expect(aborted?.aborted).to.equal(true)
  })

  it('leaves out checks that a failed one explains, and those that depend on them', async () => {
    const made: string[] = []
    const step = (name: string, level: 'ok' | 'fail', after: readonly string[] = []): Step => ({
      name,
      after,
      check: async () => (made.push(name), [level === 'ok' ? ok(name, 'fine') : fail(name, 'bad', 'do that')])
    })
    const { findings, skipped } = await examine(
      [
        step('a', 'fail'),
        step('b', 'ok', ['a']),
        step('c', 'ok', ['b']),
        step('d', 'ok'),
        step('e', 'ok', ['d'])
      ],
      manualClock()
    )
    expect(findings.map(({ name }) => name)).to.deep.equal(['a', 'd', 'e'])
    expect(made).to.have.members(['a', 'd', 'e'])
    expect(skipped).to.deep.equal([
      { name: 'b', because: 'a' },
      { name: 'c', because: 'a' }
    ])
  })

  it('prints a report that names the remedies', () => {
    const findings = [
      ok('kubernetes', 'answers'),
      warn('pods', 'none', 'add the hook'),
      fail('rbac', 'no watch', 'add it')
    ]
    const skipped = [
      { name: 'rbac', because: 'kubernetes' },
      { name: 'pods', because: 'kubernetes' },
      { name: 'pods', because: 'kubernetes' }
    ]
    expect(formatDiagnosis({ healthy: false, findings, skipped })).to.equal(`ok    kubernetes: answers
warn  pods: none
        -> add the hook
FAIL  rbac: no watch
        -> add it
skip  rbac, pods: not checked, because kubernetes failed

1 ok, 1 warning, 1 failed: the agent cannot work here as configured
`)
    expect(formatDiagnosis({ healthy: true, findings: [], skipped: [] })).to.include(
      'the agent can work here'
    )
  })
})

describe('doctor: wired to the agent’s clients', () => {
  const pod = (name: string, labels = 'apisix') => ({
    metadata: { uid: name, name, namespace: 'ns', labels },
    spec: { containers: [] },
    status: { phase: 'Running', podIP: '10.0.0.100', conditions: [{ type: 'Ready', status: 'True' }] }
  })

  let admin: ReturnType<typeof createServer>
  let url: string
  beforeEach(async () => {
    admin = createServer((_request, response) => response.writeHead(401).end()).listen(0, '127.0.0.1')
    await once(admin, 'listening')
    url = `http://127.0.0.1:${(admin.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    admin.closeAllConnections()
    admin.close()
    await once(admin, 'close')
  })

  const clients = (asked: string[], differs: Partial<DoctorClients> = {}): DoctorClients => ({
    connection: {
      async request(_method, path, _body, _signal, each) {
        asked.push(path)
        const json = ((): Record<string, unknown> => {
          if (path === '/version') return { gitVersion: 'v1.34.0' }
          if (path.includes('selfsubjectaccessreviews')) return { status: { allowed: true } }
          if (path.includes('continue='))
            return { items: [pod('apisix-1')], metadata: { resourceVersion: '7' } }
          return { items: [pod('apisix-0')], metadata: { continue: 'more' } }
        })()
        ;((json.items ?? []) as unknown[]).forEach(item => each?.(item))
        const status = path.startsWith('/api/v1/namespaces/forbidden/') ? 403 : 200
        return { status, headers: { date: new Date().toUTCString() }, json, retryAfterMs: undefined }
      }
    },
    admin: {
      standalone: async () => undefined,
      list: async () => ({ total: 0, objects: [] }),
      pageSize: 500
    },
    readGateway: async () => ({ beganAt: 0, holders: new Map() }),
    barrier: undefined,
    clock: systemClock,
    ...differs
  })

  it('runs every check', async () => {
    const asked: string[] = []
    const settings = config({ APISIX_ADMIN_URL: url, APISIX_GATEWAYS_NAMESPACE: 'gw' })
    const { healthy, findings } = await examine(doctorChecks(settings, clients(asked)), systemClock)
    expect(healthy, JSON.stringify(findings)).to.equal(true)
    expect(findings.map(({ level, name, what }) => `${level} ${name}: ${what}`)).to.deep.equal([
      'ok kubernetes: the API server answers, version v1.34.0',
      'ok rbac: all 11 permissions are granted',
      'ok admin-api: the Admin API takes our key; APISIX runs with etcd',
      'ok gateways: 2 known: ns/apisix-0, ns/apisix-1',
      'ok control-api: ns/apisix-0, ns/apisix-1: can be observed',
      'warn barrier: the plugin is not used (apisix.barrier): evidence is at best observed, and hooks take seconds instead of milliseconds',
      'ok others: no other pod looks like APISIX',
      'warn pods: no pod has a preStop hook that calls /v1/prestop or runs apisix-drain-hook'
    ])
    expect(asked).to.include(
      '/api/v1/namespaces/gw/pods?labelSelector=app.kubernetes.io%2Fname%3Dapisix&limit=500'
    )
    expect(asked).to.include('/api/v1/pods?limit=500&continue=more')
  })

  it('uses gateways listed by hand, and reports objects that it may not list', async () => {
    const settings = config({
      APISIX_ADMIN_URL: url,
      APISIX_GATEWAYS_STATIC: '[{ name: edge, host: 192.0.2.1 }]',
      APISIX_BARRIER_TOKEN: 'edd1',
      KUBERNETES_NAMESPACES: 'forbidden'
    })
    const { findings } = await examine(doctorChecks(settings, clients([])), systemClock)
    const lines = findings.map(({ level, name, what }) => `${level} ${name}: ${what}`)
    expect(lines).to.include('ok gateways: 1 known: edge')
    expect(lines).to.include('fail barrier: edge: the barrier does not answer: there is no barrier client')
    expect(lines).to.include('fail pods: cannot be checked: list /api/v1/namespaces/forbidden/pods: 403')
  })

  it('reports a failure of Kubernetes once, and names the checks that it explains (D14)', async () => {
    const settings = config({ APISIX_ADMIN_URL: url, KUBERNETES_NAMESPACES: 'shop' })
    const connection = { request: () => Promise.reject(new Error('no HTTP/2')) }
    const { healthy, findings, skipped } = await examine(
      doctorChecks(settings, clients([], { connection })),
      systemClock
    )
    expect(healthy).to.equal(false)
    expect(findings.filter(({ what }) => what.includes('no HTTP/2')).map(({ name }) => name)).to.deep.equal([
      'kubernetes'
    ])
    expect(skipped).to.deep.equal(
      ['rbac', 'namespaces', 'gateways', 'others', 'pods'].map(name => ({
        name,
        because: 'kubernetes'
      }))
    )
  })

  it('needs no Admin API with the plugin', async () => {
    const none = { APISIX_ADMIN_URL: undefined, APISIX_ADMIN_KEY: undefined }
    const given = config({ ...none, APISIX_BARRIER_TOKEN: 't' })
    const { findings } = await examine(doctorChecks(given, clients([], { admin: undefined })), systemClock)
    expect(findings.map(({ name }) => name))
      .to.include('pods')
      .and.not.include('admin-api')
  })

  it('reads the holders from the document of the Admin API in standalone mode', async () => {
    const settings = config({
      APISIX_ADMIN_URL: url,
      APISIX_GATEWAYS_STATIC: '[{ name: edge, host: 192.0.2.1 }]'
    })
    const standalone = async () => ({
      upstreams: [{ id: 'web', type: 'roundrobin', nodes: [{ host: '10.0.0.100', port: 80, weight: 1 }] }]
    })
    const { findings } = await examine(
      doctorChecks(settings, clients([], { admin: { ...clients([]).admin!, standalone } })),
      systemClock
    )
    expect(findings.map(({ level, name, what }) => `${level} ${name}: ${what}`)).to.include(
      'warn pods: no pod has a preStop hook that calls /v1/prestop or runs apisix-drain-hook; APISIX lists ns/apisix-0 (1 pod), ns/apisix-1 (1 pod)'
    )
  })
})
