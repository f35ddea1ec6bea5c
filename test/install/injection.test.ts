import { expect } from 'chai'
import { CHART, helm as anyHelm } from '../chart/helm.ts'
import { eventually } from './eventually.ts'
import { startApiServer, type ApiServer } from './api-server.ts'

interface Container {
  readonly name: string
  readonly env?: readonly object[]
  readonly resources?: { readonly limits?: object; readonly requests?: object }
  readonly lifecycle?: { readonly preStop?: { readonly exec?: { readonly command: readonly string[] } } }
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
}
interface PodSpec {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly { readonly name: string }[]
}

const RELEASE = ['apisix-drain', '--namespace=apisix']
const ASKS = { 'apisix-drain.io/inject': 'true' }
const PORTS = [{ containerPort: 8080 }]
const OURS = /^apisix-drain-/
const main = (name: string, differs: object = {}) => ({ name, image: 'shop/web', ports: PORTS, ...differs })
const helperFor = (budget: number, fallback: number) =>
  `/apisix-drain/apisix-drain-hook --url http://apisix-drain.apisix:8080 --budget ${budget}s --fallback ${fallback}s --container web`.split(
    ' '
  )

/** The policy of the real chart on a real API server. Pods are only created as dry runs, which admission handles like real pods. */
describe('injected hooks', () => {
  let api: ApiServer

  before(async function () {
    this.timeout(180_000)
    api = await startApiServer()
    const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    await namespace('apisix', ASKS)
    await namespace('kube-system', ASKS)
    await namespace('legacy', ASKS)
    await namespace('plain', {})
    await namespace('shop', ASKS)
    await namespace('hard', { ...restricted, ...ASKS })
    expect(helm('install', ...RELEASE, CHART, '--set=injection.policy.enabled=true', EXCLUDED)).to.include(
      'deployed'
    )
    await eventually(async () =>
      expect(hooked(await pod('shop', { containers: [main('web')] }))).to.deep.equal(['web'])
    )
  })
  after(() => api?.stop())

  const EXCLUDED = '--set=injection.excludedNamespaces={legacy}'
  const helm = (...args: readonly string[]) => {
    const outcome = anyHelm(...args, `--kubeconfig=${api.kubeconfig}`)
    expect(outcome.ok, outcome.stderr).to.equal(true)
    return outcome.stdout
  }
  async function namespace(name: string, labels: Record<string, string>): Promise<void> {
    const { status } = await api.call('POST', '/api/v1/namespaces', { metadata: { name } })
    expect(status).to.be.oneOf([201, 409])
    // The API server creates kube-system itself. The test creates the ServiceAccounts, because no controller runs here.
    const had = (await api.call('GET', `/api/v1/namespaces/${name}`)).json as { metadata: { labels: object } }
    const put = { ...had, metadata: { ...had.metadata, labels: { ...had.metadata.labels, ...labels } } }
    expect((await api.call('PUT', `/api/v1/namespaces/${name}`, put)).status).to.equal(200)
    await api.call('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } })
  }
  const made = (ns: string, spec: object, labels: object = {}, annotations: object = {}) =>
    api.call('POST', `/api/v1/namespaces/${ns}/pods?dryRun=All`, {
      metadata: { generateName: 'web-', labels, annotations },
      spec: { automountServiceAccountToken: false, ...spec }
    })
  /** Returns the pod as it is after admission by Kubernetes. */
  async function pod(...given: Parameters<typeof made>): Promise<PodSpec> {
    const { status, json } = await made(...given)
    expect(status, JSON.stringify(json)).to.equal(201)
    return (json as { spec: PodSpec }).spec
  }
  const all = ({ containers, initContainers = [] }: PodSpec) => [...containers, ...initContainers]
  const hooked = (spec: PodSpec) =>
    all(spec)
      .filter(({ lifecycle }) => JSON.stringify(lifecycle ?? {}).includes('apisix-drain'))
      .map(({ name }) => name)
  const commandOf = (spec: PodSpec, name = 'web') =>
    all(spec).find(container => container.name === name)?.lifecycle?.preStop?.exec?.command
  const untouched = (spec: PodSpec) => {
    expect(hooked(spec)).to.deep.equal([])
    expect(all(spec).filter(({ name }) => OURS.test(name))).to.deep.equal([])
    expect(spec.volumes ?? []).to.deep.equal([])
  }

  it('copies the helper by an init container, and leaves the rest of the pod unchanged', async () => {
    const spec = await pod('shop', { containers: [main('web', { env: [{ name: 'A', value: 'b' }] })] })
    expect(commandOf(spec)).to.deep.equal(helperFor(24, 5))
    const [container] = spec.containers
    expect(container?.env?.[0]).to.deep.equal({ name: 'A', value: 'b' })
    expect(container?.volumeMounts).to.deep.equal([
      { name: 'apisix-drain-hook', mountPath: '/apisix-drain', readOnly: true }
    ])
    expect(spec.volumes).to.deep.equal([{ name: 'apisix-drain-hook', emptyDir: { sizeLimit: '32Mi' } }])
    expect(spec.initContainers).to.have.length(1)
    expect(spec.initContainers?.[0]).to.deep.include({
      name: 'apisix-drain-hook',
      image: 'apisix-drain-hook:0.3.0',
      command: ['/apisix-drain-hook', 'install', '/apisix-drain']
    })
  })

  it('applies to namespaces and pods that ask for it, and not to a pod that declines', async () => {
    const web = { containers: [main('web')] }
    expect(hooked(await pod('plain', web, ASKS))).to.deep.equal(['web'])
    untouched(await pod('plain', web))
    untouched(await pod('shop', web, { 'apisix-drain.io/inject': 'false' }))
    expect(hooked(await pod('shop', web, ASKS))).to.deep.equal(['web'])
  })

  for (const name of ['apisix', 'kube-system', 'legacy']) {
    it(`never touches ${name}`, async () => {
      untouched(await pod(name, { containers: [main('web')] }))
      untouched(await pod(name, { containers: [main('web')] }, ASKS))
    })
  }

  it('never changes an existing preStop of any kind, but for a plain sleep', async () => {
    for (const preStop of [
      { sleep: { seconds: 24 } },
      { exec: { command: ['true'] } },
      { httpGet: { port: 80 } }
    ]) {
      const spec = await pod('shop', { containers: [main('own', { lifecycle: { preStop } }), main('web')] })
      expect(hooked(spec)).to.deep.equal(['web'])
      const [own] = spec.containers
      expect(Object.keys(own?.lifecycle?.preStop ?? {})).to.deep.equal(Object.keys(preStop))
      expect(own?.volumeMounts).to.equal(undefined)
    }
    const sleeps = main('web', { lifecycle: { preStop: { sleep: { seconds: 3 } } } })
    const least = [...helperFor(24, 3), '--at-least', '3s']
    expect(commandOf(await pod('shop', { containers: [sleeps] }))).to.deep.equal(least)
  })

  it('keeps an existing postStart', async () => {
    const postStart = { exec: { command: ['true'] } }
    const spec = await pod('shop', { containers: [main('web', { lifecycle: { postStart } })] })
    expect(spec.containers[0]?.lifecycle).to.deep.equal({
      postStart,
      preStop: { exec: { command: helperFor(24, 5) } }
    })
  })

  it('goes into every container, and not into sidecars, which end last', async () => {
    const spec = await pod('shop', {
      containers: [main('web'), main('worker', { ports: [] }), main('admin')],
      initContainers: [
        main('migrate', { ports: [] }),
        main('proxy', { restartPolicy: 'Always' }),
        main('agent', { restartPolicy: 'Always', ports: [] })
      ]
    })
    expect(hooked(spec)).to.deep.equal(['web', 'worker', 'admin'])
    const names = spec.initContainers?.map(({ name }) => name)
    expect(names).to.deep.equal(['migrate', 'proxy', 'agent', 'apisix-drain-hook'])
  })

  it('goes into the named containers instead', async () => {
    const quiet = (name: string, differs: object = {}) => main(name, { ports: [], ...differs })
    const spec = {
      containers: [quiet('a'), quiet('b')],
      initContainers: [quiet('side', { restartPolicy: 'Always' })]
    }
    const told = { 'apisix-drain.io/inject-containers': 'b, side' }
    expect(hooked(await pod('shop', spec, {}, told))).to.deep.equal(['b', 'side'])
  })

  it('fits the grace, and skips pods without a grace', async () => {
    const withGrace = (seconds: number) =>
      pod('shop', { terminationGracePeriodSeconds: seconds, containers: [main('web')] })
    for (const [grace, budget, fallback] of [
      [120, 114, 5],
      [20, 14, 5],
      [10, 7, 2],
      [2, 1, 0]
    ] as const) {
      expect(commandOf(await withGrace(grace)), String(grace)).to.deep.equal(helperFor(budget, fallback))
    }
    untouched(await withGrace(1))
    untouched(await withGrace(0))
  })

  it('names the pod by the downward API, whatever its network', async () => {
    const own = [{ name: 'POD_NAME', value: 'mine' }]
    const containers = [main('web'), main('second', { ports: [{ containerPort: 81 }], env: own })]
    const field = (name: string, fieldPath: string) => ({
      name,
      valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } }
    })
    const rest = [field('POD_NAMESPACE', 'metadata.namespace'), field('POD_UID', 'metadata.uid')]
    for (const network of [{}, { hostNetwork: true }]) {
      const spec = await pod('shop', { ...network, containers })
      expect(spec.containers.map(({ env }) => env)).to.deep.equal([
        [field('POD_NAME', 'metadata.name'), ...rest],
        [...own, ...rest]
      ])
    }
  })

  it('is admitted by Pod Security level restricted and by quotas, and a guaranteed pod stays guaranteed', async () => {
    const securityContext = {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' }
    }
    const quotas = '/api/v1/namespaces/hard/resourcequotas'
    const of = (value: string) =>
      Object.fromEntries(
        ['requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'].map(name => [name, value])
      )
    const quota = { metadata: { name: 'all' }, spec: { hard: of('9G') } }
    const { json } = await api.call('POST', quotas, quota)
    // The controller that fills in the status does not run here.
    const status = { hard: of('9G'), used: of('0') }
    await api.call('PUT', `${quotas}/all/status`, { ...(json as object), status })
    await eventually(async () => {
      const without = await made('hard', { containers: [main('web', { securityContext })] })
      expect(JSON.stringify(without.json)).to.match(/must specify limits.cpu for: web;/)
    })
    const resources = { limits: { cpu: '1', memory: '1G' }, requests: { cpu: '1', memory: '1G' } }
    const spec = await pod('hard', { containers: [main('web', { securityContext, resources })] })
    expect(hooked(spec)).to.deep.equal(['web'])
    for (const { resources: has } of all(spec)) expect(has?.limits).to.deep.equal(has?.requests)
  })

  it('skips Windows pods', async () => {
    untouched(await pod('shop', { os: { name: 'windows' }, containers: [main('web')] }))
  })

  it('is the documented hook with curl', async () => {
    const curl = ['--set=injection.policy.enabled=true', '--set=injection.hook=curl']
    helm('upgrade', ...RELEASE, CHART, ...curl, EXCLUDED)
    await eventually(async () => {
      const sleeps = { lifecycle: { preStop: { exec: { command: ['sleep', '4'] } } } }
      const spec = await pod('shop', { containers: [main('web'), main('slow', sleeps)] })
      expect(commandOf(spec, 'slow')?.[2]).to.match(
        /^sleep 4 .*for pause in 0 1; .*&container=slow&sleep=4s&atLeast=4s" && exit/
      )
      expect(commandOf(spec)).to.deep.equal([
        'sh',
        '-c',
        `sleep 5 & timeout 24 sh -c 'for pause in 0 1 1; do sleep $pause; curl -fsS -m 24 --noproxy "*" --connect-timeout 0.7 -X POST "http://apisix-drain.apisix:8080/v1/prestop?namespace=$POD_NAMESPACE&pod=$POD_NAME&container=web&sleep=5s" && exit; [ $? = 22 ] && break; done; false' && kill $! 2>/dev/null || wait`
      ])
      expect({ volumes: spec.volumes, initContainers: spec.initContainers }).to.deep.equal({
        volumes: undefined,
        initContainers: undefined
      })
    })
  }).timeout(180_000)
})
