import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { parse, stringify } from 'yaml'
import { checkRbac } from '../../agent/doctor/rights/check-rbac.ts'
import { packageChart } from '../../scripts/release.ts'
import { versions } from '../../scripts/version.ts'
import { CHART, CI, helm as anyHelm } from '../chart/helm.ts'
import { moduleFolder, PROMETHEUS_OPERATOR, toolPath } from '../chart/tools.ts'
import { eventually } from './eventually.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { onEachKubernetes } from './each-kubernetes.ts'
import { everything } from './inventory.ts'

/** The longest wait for the agent and the API server, in ms. */
const WITHIN_MS = 30_000

const ROOT = join(import.meta.dirname, '../..')
const RELEASE = ['apisix-drain', '--namespace=apisix']
const DEPLOYMENT = '/apis/apps/v1/namespaces/apisix/deployments/apisix-drain'

/** Steps on one API server, in order; the first failure ends the test. */
onEachKubernetes('helm on a real API server', version => {
  let api: ApiServer
  let untouched: readonly string[]
  let token: string

  before(async function () {
    this.timeout(120_000)
    api = await startApiServer(version)
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await created('/api/v1/namespaces', { metadata: { name: 'apisix', labels } })
    const crds = join(moduleFolder(PROMETHEUS_OPERATOR), 'example/prometheus-operator-crd')
    for (const plural of ['servicemonitors', 'prometheusrules']) {
      const crd: unknown = parse(readFileSync(join(crds, `monitoring.coreos.com_${plural}.yaml`), 'utf8'))
      await created('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd)
    }
    // The API server serves a new kind a moment after the creation of its CRD.
    await eventually(async () => (untouched = await everything(api)))
  })
  after(() => api?.stop())

  const helm = (...args: readonly string[]) => {
    const outcome = anyHelm(...args, `--kubeconfig=${api.kubeconfig}`)
    expect(outcome.ok, outcome.stderr).to.equal(true)
    return outcome.stdout
  }
  const created = async (path: string, body: unknown) => {
    const { status, json } = await api.call('POST', path, body)
    expect(status, JSON.stringify(json)).to.equal(201)
    return json
  }

  it('installs from the package of a release with no value set, and prints the next commands', () => {
    const folder = mkdtempSync(join(tmpdir(), 'package-'))
    packageChart({ helm: toolPath('helm'), folder })
    const said = helm('install', ...RELEASE, join(folder, `apisix-drain-${versions()[0]?.version}.tgz`))
    rmSync(folder, { recursive: true })
    expect(said).to.include('STATUS: deployed')
    expect(said).to.include('uses the Admin API at http://apisix-admin.apisix:9180')
    expect(said).to.include('kubectl -n apisix create secret generic apisix-drain --from-literal=admin-key=')
    expect(said).to.include('kubectl -n apisix exec deploy/apisix-drain -- node agent/main.ts doctor')
    expect(said).to.include('kubectl label namespace <yours> apisix-drain.io/inject=true')
    expect(said).not.to.include('/v1/prestop')
    expect(said).to.include('kubectl -n apisix port-forward svc/apisix-drain 8081:8081')
    expect(said).to.include(
      `secret apisix-drain-page -o go-template='{{index .data "dashboard-token" | base64decode}}'`
    )
  })

  it('prints the hook if none is injected, and no page if it is off', () => {
    const off = ['--set=injection.policy.enabled=false', '--set=config.serve.dashboard.enabled=false']
    const [, notes = ''] = helm('upgrade', ...RELEASE, CHART, '--dry-run=server', ...off).split('NOTES:')
    expect(notes).to.include(
      '"http://apisix-drain.apisix:8080/v1/prestop?namespace=$POD_NAMESPACE&pod=$POD_NAME&container=app&sleep=5s" && exit'
    )
    expect(notes).to.include('--noproxy').and.not.include('port-forward')
  })

  it('creates pods that a namespace of Pod Security level restricted admits', async () => {
    const { spec } = (await api.call('GET', DEPLOYMENT)).json as { spec: { template: { spec: PodSpec } } }
    const pod = spec.template.spec
    const admitted = (spec: PodSpec) =>
      api.call('POST', '/api/v1/namespaces/apisix/pods?dryRun=All', { metadata: { name: 'try' }, spec })
    expect((await admitted(pod)).status).to.equal(201)
    const open = pod.containers.map(container => ({ ...container, securityContext: {} }))
    const { status, json } = await admitted({ ...pod, containers: open })
    expect({ status, json: JSON.stringify(json) }).to.satisfy(
      (answer: { status: number; json: string }) =>
        answer.status === 403 && answer.json.includes('restricted')
    )
  })

  it('grants the agent its calls, and no change of pods or Secrets', async () => {
    const path = '/api/v1/namespaces/apisix/serviceaccounts/apisix-drain/token'
    const { status } = (await created(path, { spec: {} })) as { status: { token: string } }
    token = status.token
    const ask = async (method: string, path: string, body: unknown) => {
      const { status, json } = await api.call(method, path, body, token)
      return { status, json }
    }
    const lease = { namespace: 'apisix', name: 'apisix-drain' }
    const findings = await checkRbac(ask, [], lease)(AbortSignal.timeout(30_000))
    expect(findings.map(({ level, what }) => `${level}: ${what}`)).to.deep.equal([
      'ok: all 14 permissions are granted'
    ])

    const denied = [
      ...['create', 'update', 'patch', 'delete', 'deletecollection'].map(verb => [verb, '', 'pods'] as const),
      ['create', '', 'pods/eviction'],
      ['create', '', 'pods/exec'],
      ['get', '', 'secrets'],
      ['list', '', 'secrets'],
      ['get', '', 'configmaps'],
      ['update', 'apps', 'deployments'],
      ['delete', 'coordination.k8s.io', 'leases']
    ] as const
    for (const [verb, group, name] of denied) {
      const [resource, subresource] = name.split('/')
      const attributes = { verb, group, resource, ...(subresource && { subresource }), namespace: 'apisix' }
      const review = { spec: { resourceAttributes: attributes } }
      const { json } = await ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review)
      expect((json as { status: { allowed: boolean } }).status.allowed, `${verb} ${name}`).to.equal(false)
    }
  })

  it('runs the agent with the chart’s account and configuration: its watches see the cluster', async () => {
    const { data } = (await api.call('GET', '/api/v1/namespaces/apisix/configmaps/apisix-drain')).json as {
      data: { 'config.yaml': string }
    }
    const folder = mkdtempSync(join(tmpdir(), 'install-'))
    writeFileSync(join(folder, 'admin-key'), 'key')
    for (const [name, key, file] of [
      ['apisix-drain-token', 'token', 'barrier-token'],
      ['apisix-drain-page', 'dashboard-token', 'dashboard-token'],
      ['apisix-drain-barrier-tls', 'ca.crt', 'barrier-ca.crt']
    ] as const) {
      const { json } = await api.call('GET', `/api/v1/namespaces/apisix/secrets/${name}`)
      const { data } = json as { data: Readonly<Record<string, string>> }
      writeFileSync(join(folder, file), Buffer.from(data[key] ?? '', 'base64'))
    }
    const { inject: _, ...settings } = parse(
      data['config.yaml'].replaceAll('/run/secrets/apisix-drain', folder)
    )
    settings.kubernetes = { ...settings.kubernetes, kubeconfig: api.kubeconfigFor(token) }
    settings.apisix.admin.url = 'http://127.0.0.1:1'
    Object.assign(settings.serve, { host: '127.0.0.1', port: 0 })
    writeFileSync(join(folder, 'config.yaml'), stringify(settings))
    const child = spawn(process.execPath, ['agent/main.ts', 'run', '--config', join(folder, 'config.yaml')], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {}
    })
    const ended = once(child, 'exit')
    const holder = async () => {
      const path = '/apis/coordination.k8s.io/v1/namespaces/apisix/leases/apisix-drain'
      const { json } = await api.call('GET', path)
      return (json as { spec?: { holderIdentity?: string } }).spec?.holderIdentity
    }
    try {
      const port = await portOf(child.stdout)
      await eventually(async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(5000) })
        const { missing } = (await answer.json()) as { missing: { part: string }[] }
        // There is no gateway here, but all watches work. With the plugin nothing needs the inventory.
        expect(missing.map(({ part }) => part).toSorted()).to.deep.equal(['gateways'])
      }, WITHIN_MS)
      await eventually(async () => expect(await holder()).to.match(/_[0-9a-f]{8}$/))
    } finally {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true })
    }
    expect(await holder(), 'given back').to.equal('')
  })

  it('is upgraded to all options at once, and rolled back', async () => {
    const first = helm('get', 'manifest', ...RELEASE)
    // The address of a Service can only be chosen at its creation.
    const all = [`--values=${join(CI, 'everything-values.yaml')}`, '--set=service.clusterIP=']
    helm('upgrade', ...RELEASE, CHART, ...all)
    const rule = await api.call(
      'GET',
      '/apis/monitoring.coreos.com/v1/namespaces/apisix/prometheusrules/apisix-drain'
    )
    expect(rule.status).to.equal(200)
    helm('rollback', ...RELEASE, '1')
    expect(helm('get', 'manifest', ...RELEASE)).to.equal(first)
    const gone = await api.call(
      'GET',
      '/apis/monitoring.coreos.com/v1/namespaces/apisix/prometheusrules/apisix-drain'
    )
    expect(gone.status).to.equal(404)
    expect(await api.call('GET', DEPLOYMENT)).to.have.nested.property('json.spec.replicas', 2)
  })

  it('is uninstalled without leftovers besides what gateways mount', async () => {
    helm('uninstall', ...RELEASE)
    const kept = [
      `v1/configmaps apisix/apisix-drain-lua-${versions()[0]?.version}`,
      'v1/secrets apisix/apisix-drain-barrier-tls',
      'v1/secrets apisix/apisix-drain-token'
    ]
    const left = [...untouched, ...kept].toSorted()
    await eventually(async () => expect(await everything(api)).to.deep.equal(left))
  })
})

interface PodSpec {
  readonly containers: readonly object[]
}

async function portOf(output: NodeJS.ReadableStream): Promise<number> {
  const lines = createInterface({ input: output, signal: AbortSignal.timeout(30_000) })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  lines.on('line', line => {
    const { msg, port } = JSON.parse(line) as { msg: string; port?: number }
    if (msg === 'listening' && port !== undefined) resolve(port)
  })
  lines.once('close', () => reject(new Error('the agent ended before it listened')))
  return promise
}
