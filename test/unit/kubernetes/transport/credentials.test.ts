import { expect } from 'chai'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadCredentials } from '../../../../agent/kubernetes/transport/credentials.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const ACCOUNT = 'var/run/secrets/kubernetes.io/serviceaccount'

describe('watch: credentials', () => {
  let dir: string
  beforeEach(async () => void (dir = await mkdtemp(join(tmpdir(), 'credentials-'))))
  afterEach(() => rm(dir, { recursive: true }))

  /** Writes a kubeconfig with this cluster and user. */
  const kubeconfig = async (cluster: object, user: object) => {
    const file = join(dir, 'config')
    const config = {
      clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x'
    }
    await writeFile(file, JSON.stringify(config))
    return { kind: 'kubeconfig', file } as const
  }
  const load = (source: Parameters<typeof loadCredentials>[0], clock = manualClock()) => ({
    clock,
    credentials: loadCredentials(source, clock)
  })

  it('from a kubeconfig: certificates, server name and token', async () => {
    const data = (text: string) => Buffer.from(text).toString('base64')
    const { credentials } = load(
      await kubeconfig(
        { 'certificate-authority-data': data('CA'), 'tls-server-name': 'api.example' },
        {
          token: 't1',
          'client-certificate-data': data('CERT'),
          'client-key-data': data('KEY'),
          as: 'auditor'
        }
      )
    )
    expect(credentials.origin).to.equal('https://10.0.0.1:6443')
    expect(await credentials.tls()).to.deep.equal({
      ca: Buffer.from('CA'),
      cert: Buffer.from('CERT'),
      key: Buffer.from('KEY'),
      servername: 'api.example'
    })
    expect(await credentials.headers()).to.deep.equal({
      authorization: 'Bearer t1',
      'impersonate-user': 'auditor'
    })
  })

  it('accepts user and password, an unverified server, and http://', async () => {
    const basic = load(
      await kubeconfig({ 'insecure-skip-tls-verify': true }, { username: 'a', password: 'b' })
    )
    expect(await basic.credentials.tls()).to.deep.equal({ rejectUnauthorized: false })
    expect(await basic.credentials.headers()).to.deep.equal({ authorization: 'Basic YTpi' })
    const plain = load(await kubeconfig({ server: 'http://127.0.0.1:8001' }, { token: 't' }))
    expect(plain.credentials.origin).to.equal('http://127.0.0.1:8001')
    expect(await plain.credentials.headers()).to.deep.equal({ authorization: 'Bearer t' })
  })

  it('runs an exec plugin, and runs it again when the server refuses its credentials', async () => {
    const file = join(dir, 'credential.json')
    const give = (token: string) => writeFile(file, JSON.stringify({ status: { token } }))
    await give('one')
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'cat', args: [file] }
    const { credentials } = load(await kubeconfig({}, { exec }))
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer one' })
    await give('two')
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer one' })
    credentials.refused()
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer two' })
  })

  it('uses a replaced kubeconfig, and keeps the old one while the new one is unreadable', async () => {
    const source = await kubeconfig({}, { token: 'one' })
    const { credentials } = load(source)
    expect((await credentials.headers())['authorization']).to.equal('Bearer one')
    await writeFile(source.file, '{ half')
    credentials.refused()
    expect((await credentials.headers())['authorization']).to.equal('Bearer one')
    await kubeconfig({}, { token: 'two' })
    credentials.refused()
    expect((await credentials.headers())['authorization']).to.equal('Bearer two')
  })

  it('in a cluster: reads the token file again when it may have been rotated', async () => {
    Object.assign(process.env, { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' })
    try {
      await mkdir(join(dir, ACCOUNT), { recursive: true })
      const give = (token: string) => writeFile(join(dir, ACCOUNT, 'token'), token)
      await writeFile(join(dir, ACCOUNT, 'ca.crt'), 'CA')
      await give('one\n')
      const { credentials, clock } = load({ kind: 'in-cluster', account: join(dir, ACCOUNT) })
      expect(credentials.origin).to.equal('https://[fd00::1]')
      expect(await credentials.tls()).to.deep.equal({ ca: Buffer.from('CA') })
      expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer one' })
      await give('two')
      expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer one' })
      clock.advance(10_001)
      expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer two' })
      await give('three')
      credentials.refused()
      expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer three' })
      await rm(join(dir, ACCOUNT, 'token'))
      credentials.refused()
      expect(await credentials.headers().catch(err => err.code)).to.equal('ENOENT')
      await give('four')
      expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer four' })
    } finally {
      delete process.env['KUBERNETES_SERVICE_HOST']
      delete process.env['KUBERNETES_SERVICE_PORT']
    }
  })

  it('reports that it runs outside of a cluster', () => {
    expect(() => load({ kind: 'in-cluster', account: dir })).to.throw(
      'not in a pod; set kubernetes.kubeconfig'
    )
  })

  it('reports the errors of a kubeconfig', async () => {
    for (const [cluster, problem] of [
      [{ server: 'nonsense' }, '"nonsense" is not the URL of an API server'],
      [{ server: 'https://h/k8s/clusters/c1' }, 'a path in the URL is not supported'],
      [{ 'proxy-url': 'http://p' }, 'proxy-url is not supported']
    ] as const) {
      const broken = await kubeconfig(cluster, {})
      expect(() => load(broken), problem).to.throw(problem)
    }
    expect(() => load({ kind: 'kubeconfig', file: join(dir, 'absent') })).to.throw('absent')
  })
})
