import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  CoordinationV1Api,
  CoreV1Api,
  KubeConfig,
  PatchStrategy,
  VersionApi,
  Watch,
  setHeaderOptions,
  type V1Pod
} from '@kubernetes/client-node'
import { expect } from 'chai'
import { startKubernetes, type Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { connectTo, podDraft, until } from './client.ts'

const run = promisify(execFile)

describe('sandbox/kubernetes and real clients', () => {
  let directory: string
  let kubernetes: Kubernetes
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sandbox-kubernetes-'))
    kubernetes = await startKubernetes()
  })
  after(async () => {
    await kubernetes.close()
    await rm(directory, { recursive: true })
  })

  describe('client-node', () => {
    const config = new KubeConfig()
    before(async () => {
      const path = join(directory, 'kubeconfig')
      await kubernetes.writeKubeconfig(path)
      expect((await stat(path)).mode & 0o777).to.equal(0o600)
      config.loadFromString(await readFile(path, 'utf8'))
    })
    const namespace = 'default'

    it('creates, lists, patches, watches and deletes pods', async () => {
      const api = config.makeApiClient(CoreV1Api)
      const body = podDraft('c1', { app: 'c' }) as unknown as V1Pod
      const created = await api.createNamespacedPod({ namespace, body })
      expect(created.metadata?.uid).to.be.a('string')
      const seen: string[] = []
      const watch = await new Watch(config).watch(
        '/api/v1/namespaces/default/pods',
        { labelSelector: 'app=c' },
        (type, pod: V1Pod) => seen.push(`${type} ${pod.metadata?.name}`),
        () => {}
      )
      await until(() => seen.includes('ADDED c1'), 'ADDED')
      const patched = await api.patchNamespacedPod(
        { namespace, name: 'c1', body: { metadata: { annotations: { a: 'b' } } } },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
      )
      expect(patched.metadata?.annotations).to.deep.equal({ a: 'b' })
      const { items, metadata } = await api.listNamespacedPod({
        namespace,
        labelSelector: 'app=c',
        limit: 10
      })
      expect(items.map(pod => pod.metadata?.name)).to.deep.equal(['c1'])
      expect(metadata?.resourceVersion).to.equal(`${kubernetes.store.version()}`)
      const ending = await api.deleteNamespacedPod({
        namespace,
        name: 'c1',
        gracePeriodSeconds: 9
      })
      expect(ending.metadata?.deletionGracePeriodSeconds).to.equal(9)
      await api.deleteNamespacedPod({ namespace, name: 'c1', gracePeriodSeconds: 0 })
      await until(() => seen.includes('DELETED c1'), 'DELETED')
      expect(seen.filter(event => event === 'MODIFIED c1')).to.have.length(3)
      watch.abort()
    })
    it('loses a Lease to a faster agent', async () => {
      const api = config.makeApiClient(CoordinationV1Api)
      const body = { metadata: { name: 'leader' }, spec: { holderIdentity: 'a', leaseDurationSeconds: 15 } }
      const lease = await api.createNamespacedLease({ namespace, body })
      await api.replaceNamespacedLease({
        namespace,
        name: 'leader',
        body: { metadata: lease.metadata!, spec: { holderIdentity: 'b' } }
      })
      const late = await api.replaceNamespacedLease({ namespace, name: 'leader', body: lease }).then(
        () => undefined,
        (err: { code?: number }) => err.code
      )
      expect(late).to.equal(409)
    })
    it('reads the version', async () => {
      expect((await config.makeApiClient(VersionApi).getCode()).gitVersion).to.equal('v1.36.0')
    })
  })

  describe('curl', () => {
    for (const protocol of ['--http1.1', '--http2'])
      it(`lists and watches over TLS with ${protocol}`, async () => {
        const ca = join(directory, 'ca.pem')
        await writeFile(ca, kubernetes.ca!)
        const common = [
          '-sS',
          protocol,
          '-m',
          '5',
          '--cacert',
          ca,
          '-H',
          `Authorization: Bearer ${kubernetes.token}`
        ]
        const url = `${kubernetes.url}/api/v1/namespaces/default/pods`
        kubernetes.store.create('pods', podDraft('curled'))
        const { stdout: list } = await run('curl', [...common, '-w', '%{http_version}', url])
        expect(list.split('\n').at(-1)).to.equal(protocol === '--http2' ? '2' : '1.1')
        expect(list).to.contain('"name":"curled"')
        const { stdout: events } = await run('curl', [...common, '-N', `${url}?watch=1&timeoutSeconds=1`])
        expect(
          events
            .trim()
            .split('\n')
            .map(line => (JSON.parse(line) as { type: string }).type)
        ).to.deep.equal(['ADDED'])
        kubernetes.store.delete('pods', 'default', 'curled', { gracePeriodSeconds: 0 })
      })
    it('speaks HTTP/1.1 and HTTP/2 in the clear', async () => {
      const plain = await startKubernetes({ tls: false })
      expect(plain.url).to.match(/^http:/)
      const { stdout } = await run('curl', ['-sS', '--http1.1', '-m', '5', `${plain.url}/readyz`])
      expect(stdout).to.equal('ok')
      const client = connectTo(plain)
      expect((await client.ask('GET', '/api/v1/pods')).status).to.equal(200)
      client.close()
      await plain.close()
    })
  })
})
