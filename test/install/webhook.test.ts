import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { systemClock } from '../../agent/base/clock.ts'
import { startInjection } from '../../agent/hook/inject/server.ts'
import { memoryLog } from '../build/serve.ts'
import { CHART, helm as anyHelm } from '../chart/helm.ts'
import { eventually } from './eventually.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { OLDEST } from './build.ts'
import { onEachKubernetes } from './each-kubernetes.ts'

const RELEASE = ['apisix-drain', '--namespace=apisix']
const CONFIGURATION =
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/apisix-apisix-drain'
const HELPER = ['/apisix-drain/apisix-drain-hook', '--url', 'http://apisix-drain.apisix:8080']
const SECRET = '/api/v1/namespaces/apisix/secrets/apisix-drain-webhook-tls'

interface Configuration {
  readonly metadata: object
  readonly webhooks: readonly {
    readonly clientConfig: { readonly caBundle?: string; readonly service: object }
  }[]
}

const main = (name: string, differs: object = {}) => ({
  name,
  image: 'shop/web',
  ports: [{ containerPort: 8080 }],
  ...differs
})
const does = (...command: readonly string[]) => ({ lifecycle: { preStop: { exec: { command } } } })
const { preStop } = does('wait-for-clients').lifecycle

const toOS = (operator: string) => {
  const matchExpressions = [{ key: 'kubernetes.io/os', operator, values: ['windows'] }]
  const nodeSelectorTerms = [{ matchExpressions }]
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } }
}

/** Pods that need every rule of the injection at least once. */
const PODS: Readonly<Record<string, { readonly spec: object; readonly annotations?: object }>> = {
  plain: { spec: { containers: [main('web')] } },
  'an own preStop': { spec: { containers: [main('own', { lifecycle: { preStop } }), main('web')] } },
  'only an own preStop': { spec: { containers: [main('own', { lifecycle: { preStop } })] } },
  'a sleep': { spec: { containers: [main('web', does('sleep', '15')), main('istio-proxy')] } },
  'a sleep of a shell': { spec: { containers: [main('web', does('/bin/sh', '-c', 'sleep 5'))] } },
  'a sleep of bash': { spec: { containers: [main('web', does('bash', '-c', '/usr/bin/sleep 5s'))] } },
  'a sleep that leaves the reserve': { spec: { containers: [main('web', does('sleep', '23'))] } },
  'a sleep that leaves less': { spec: { containers: [main('web', does('sleep', '24'))] } },
  'a sleep under a short grace': {
    spec: { terminationGracePeriodSeconds: 10, containers: [main('web', does('sleep', '2'))] }
  },
  'a sleep and more': { spec: { containers: [main('web', does('sh', '-c', 'sleep 5; nginx -s quit'))] } },
  'a sleep of nothing': { spec: { containers: [main('web', does('sleep', '0'))] } },
  'a sleep in words that are no text': { spec: { containers: [main('web', does('sleep', '$SECONDS'))] } },
  'a proxy of a database': { spec: { containers: [main('web'), { name: 'sql', image: 'sql-proxy' }] } },
  'a queue of Knative': {
    spec: {
      containers: [
        main('user', { lifecycle: { preStop: { httpGet: { port: 8022, path: '/wait-for-drain' } } } }),
        main('queue-proxy', { ports: [{ containerPort: 8012 }] })
      ]
    }
  },
  'a Job': { spec: { restartPolicy: 'Never', containers: [{ name: 'once', image: 'shop/once' }] } },
  'a uid of a range': {
    spec: { securityContext: { runAsUser: 1000690000, fsGroup: 1000690000 }, containers: [main('web')] }
  },
  'a private registry': {
    spec: {
      imagePullSecrets: [{ name: 'pull' }],
      containers: [main('web', { resources: { limits: { cpu: '1', memory: '1Gi' } } })]
    }
  },
  'a postStart': { spec: { containers: [main('web', { lifecycle: { postStart: preStop } })] } },
  sidecars: {
    spec: {
      containers: [main('web'), main('worker', { ports: [] })],
      initContainers: [main('migrate', { ports: [] }), main('proxy', { restartPolicy: 'Always' })]
    }
  },
  'no ports': {
    spec: {
      containers: [main('a', { ports: [] }), main('b', { ports: [] })],
      initContainers: [main('side', { ports: [], restartPolicy: 'Always' })]
    }
  },
  'named containers': {
    spec: { containers: [main('web'), main('worker', { ports: [] })] },
    annotations: { 'apisix-drain.io/inject-containers': 'worker , nobody' }
  },
  'no container named': {
    spec: { containers: [main('web')] },
    annotations: { 'apisix-drain.io/inject-containers': '' }
  },
  'a list of names that is too long': {
    spec: { containers: [main('web')] },
    annotations: { 'apisix-drain.io/inject-containers': 'web,'.repeat(257) }
  },
  'a list of names that is as long as can be': {
    spec: { containers: [main('web')] },
    annotations: { 'apisix-drain.io/inject-containers': 'web,'.repeat(256) }
  },
  'too many containers': {
    spec: { containers: Array.from({ length: 251 }, (_, i) => main(`web-${i}`)) }
  },
  'volumes and mounts': {
    spec: {
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [main('web', { volumeMounts: [{ name: 'data', mountPath: '/data' }] })]
    }
  },
  'the network of the host': {
    spec: { hostNetwork: true, containers: [main('web', { env: [{ name: 'POD_NAME', value: 'mine' }] })] }
  },
  'a long grace': { spec: { terminationGracePeriodSeconds: 600, containers: [main('web')] } },
  'a short grace': { spec: { terminationGracePeriodSeconds: 7, containers: [main('web')] } },
  'no grace': { spec: { terminationGracePeriodSeconds: 1, containers: [main('web')] } },
  windows: { spec: { os: { name: 'windows' }, containers: [main('web')] } },
  'a selector for Windows': {
    spec: { nodeSelector: { 'kubernetes.io/os': 'windows' }, containers: [main('web')] }
  },
  'a selector for Linux': {
    spec: { nodeSelector: { 'kubernetes.io/os': 'linux' }, containers: [main('web')] }
  },
  'affinity to Windows': { spec: { affinity: toOS('In'), containers: [main('web')] } },
  'affinity to all but Windows': { spec: { affinity: toOS('NotIn'), containers: [main('web')] } }
}

/** The real chart on a real API server, which calls the agent's webhook over TLS. */
onEachKubernetes('the webhook that adds hooks', version => {
  let api: ApiServer
  let folder: string
  let stop: (() => Promise<void>) | undefined

  before(async function () {
    this.timeout(180_000)
    folder = mkdtempSync(join(tmpdir(), 'webhook-'))
    api = await startApiServer(version)
    for (const name of ['apisix', 'shop']) {
      const labels = { 'apisix-drain.io/inject': 'true' }
      await created('/api/v1/namespaces', { metadata: { name, labels } })
      await created(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } })
    }
    helm('install', ...RELEASE, CHART, '--set=injection.webhook.enabled=true')
    await leadHere()
  })
  after(async () => {
    await stop?.()
    await api?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const helm = (...args: readonly string[]) => {
    const outcome = anyHelm(...args, `--kubeconfig=${api.kubeconfig}`)
    expect(outcome.ok, outcome.stderr).to.equal(true)
  }
  const created = async (path: string, body: unknown) => {
    const { status, json } = await api.call('POST', path, body)
    expect(status, JSON.stringify(json)).to.equal(201)
    return json
  }
  const configuration = async () => (await api.call('GET', CONFIGURATION)).json as Configuration
  const bundle = async () => (await configuration()).webhooks[0]?.clientConfig.caBundle ?? ''
  const secret = async () => ((await api.call('GET', SECRET)).json as { data: Record<string, string> }).data

  async function made(
    ns: string,
    { spec, annotations = {} }: { spec: object; annotations?: object },
    labels = {}
  ) {
    const body = {
      metadata: { generateName: 'web-', labels, annotations },
      spec: { automountServiceAccountToken: false, ...spec }
    }
    const { status, json } = await api.call('POST', `/api/v1/namespaces/${ns}/pods?dryRun=All`, body)
    expect(status, JSON.stringify(json)).to.equal(201)
    return (json as { spec: object }).spec
  }
  /** Makes the Service lead to this machine, because no kube-proxy runs here. An upgrade restores the chart's own Service. */
  async function leadHere(): Promise<void> {
    const service = '/api/v1/namespaces/apisix/services'
    await api.call('DELETE', `${service}/apisix-drain`)
    const spec = { type: 'ExternalName', externalName: 'localhost' }
    await created(service, { metadata: { name: 'apisix-drain' }, spec })
  }
  const everyPod = async () => {
    const specs: Record<string, object> = {}
    for (const [name, pod] of Object.entries(PODS)) specs[name] = await made('shop', pod)
    // Kubernetes has the sleep hook since 1.30.
    const sleeps = main('web', { lifecycle: { preStop: { sleep: { seconds: 3 } } } })
    if (version !== OLDEST) specs['sleep'] = await made('shop', { spec: { containers: [sleeps] } })
    const command = (name: string) =>
      /"command":(\[[^\]]*(?:budget|sleep|wait)[^\]]*\])/.exec(JSON.stringify(specs[name]))?.[1]
    const least = (seconds: number, budget = 24) => {
      const times = `--budget ${budget}s --fallback ${seconds}s --container web --at-least ${seconds}s`
      return JSON.stringify([...HELPER, ...times.split(' ')])
    }
    expect(command('a sleep')).to.equal(least(15))
    expect(command('a sleep of a shell')).to.equal(least(5))
    expect(command('a sleep of bash')).to.equal(least(5))
    expect(command('a sleep that leaves the reserve')).to.equal(least(23))
    expect(command('a sleep under a short grace')).to.equal(least(2, 7))
    expect(command('a sleep that leaves less')).to.equal('["sleep","24"]')
    expect(command('a sleep and more')).to.equal('["sh","-c","sleep 5; nginx -s quit"]')
    expect(command('a sleep of nothing')).to.equal('["sleep","0"]')
    expect(command('a sleep in words that are no text')).to.equal('["sleep","$SECONDS"]')
    if (version !== OLDEST) expect(command('sleep')).to.equal(least(3))
    return specs
  }
  const plain = { spec: { containers: [main('web')] } }
  const isHooked = (spec: object) => JSON.stringify(spec).includes('apisix-drain-hook')

  /** Does what the kubelet does: it writes the Secret's data to the files that the agent reads. */
  async function mount(): Promise<void> {
    const data = await secret()
    const written = { 'webhook.crt': data['tls.crt'], 'webhook.key': data['tls.key'] }
    for (const [name, text = ''] of Object.entries(written))
      writeFileSync(join(folder, name), Buffer.from(text, 'base64'))
  }

  async function start(): Promise<void> {
    const path = '/api/v1/namespaces/apisix/configmaps/apisix-drain'
    const { data } = (await api.call('GET', path)).json as { data: Record<string, string> }
    const file = join(folder, 'injection.yaml')
    writeFileSync(file, (data['injection.yaml'] ?? '').replaceAll('/run/secrets/apisix-drain', folder))
    const { log, lines } = memoryLog()
    const inject = { file, port: 0 }
    stop = await startInjection({ inject, host: '127.0.0.1', clock: systemClock, log })
    const port = lines.find(({ msg }) => msg === 'adding hooks to pods that ask for them')?.['port']
    await eventually(async () => {
      const now = await configuration()
      const webhooks = now.webhooks.map(webhook => ({
        ...webhook,
        clientConfig: { ...webhook.clientConfig, service: { ...webhook.clientConfig.service, port } }
      }))
      expect((await api.call('PUT', CONFIGURATION, { ...now, webhooks })).status).to.equal(200)
    })
  }
  const upgrade = async (...args: readonly string[]) => {
    helm('upgrade', ...RELEASE, CHART, '--set=injection.webhook.enabled=true', ...args)
    await leadHere()
    await stop?.()
    await start()
  }

  it('admits pods while no agent runs', async () =>
    expect(isHooked(await made('shop', plain))).to.equal(false))

  it('is called over TLS, with the certificate and the CA of the chart', async () => {
    await mount()
    await start()
    await eventually(async () => expect(isHooked(await made('shop', plain))).to.equal(true))
    expect(isHooked(await made('shop', plain, { 'apisix-drain.io/inject': 'false' }))).to.equal(false)
    expect(isHooked(await made('apisix', plain, { 'apisix-drain.io/inject': 'true' }))).to.equal(false)
    expect(await bundle()).to.equal((await secret())['ca.crt'])
  })

  it('keeps its certificate through an upgrade of the chart', async () => {
    const before = [await secret(), await bundle()]
    await upgrade('--set=podDisruptionBudget.enabled=false')
    expect([await secret(), await bundle()]).to.deep.equal(before)
    await eventually(async () => expect(isHooked(await made('shop', plain))).to.equal(true))
  })

  it('follows a new certificate, which an upgrade makes if the Secret is gone', async () => {
    const before = await bundle()
    expect((await api.call('DELETE', SECRET)).status).to.equal(200)
    await upgrade()
    expect(await bundle()).not.to.equal(before)
    expect(isHooked(await made('shop', plain)), 'with the old one').to.equal(false)
    await mount()
    await eventually(async () => expect(isHooked(await made('shop', plain))).to.equal(true))
  })

  const afterwards =
    version === OLDEST
      ? 'lets pods in when the agent is gone; of policies the chart says where they are'
      : 'lets pods in when the agent is gone; the policy makes the same of every pod'
  it(afterwards, async () => {
    await eventually(async () => expect(isHooked(await made('shop', plain))).to.equal(true))
    const specs = await everyPod()
    const bare = Object.keys(specs).filter(name => /windows/i.test(name) && !isHooked(specs[name] ?? {}))
    expect(bare).to.deep.equal(['windows', 'a selector for Windows', 'affinity to Windows'])
    await stop?.()
    stop = undefined
    expect(isHooked(await made('shop', plain))).to.equal(false)

    helm('uninstall', ...RELEASE)
    const byPolicy = ['install', ...RELEASE, CHART, '--set=injection.policy.enabled=true']
    if (version === OLDEST) {
      const { ok, stderr } = anyHelm(...byPolicy, `--kubeconfig=${api.kubeconfig}`)
      expect({ ok, said: stderr.includes('from 1.36 on; use injection.webhook') }, stderr).to.deep.equal({
        ok: false,
        said: true
      })
      return
    }
    helm(...byPolicy)
    await eventually(async () => expect(isHooked(await made('shop', plain))).to.equal(true))
    expect(await everyPod()).to.deep.equal(specs)
  }).timeout(180_000)
})
