import { createPrivateKey, X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { CHART, helm as anyHelm } from '../chart/helm.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { onEachKubernetes } from './each-kubernetes.ts'

const RELEASE = ['apisix-drain', '--namespace=apisix']
const SECRET = '/api/v1/namespaces/apisix/secrets/apisix-drain-barrier-tls'
const [ENABLED, OFF] = ['--set=plugin.enabled=true', '--set=plugin.enabled=false']

/** Steps on one API server, in order. */
onEachKubernetes('the certificate of the barrier on a real API server', version => {
  let api: ApiServer

  before(async function () {
    this.timeout(120_000)
    api = await startApiServer(version)
    const { status } = await api.call('POST', '/api/v1/namespaces', { metadata: { name: 'apisix' } })
    expect(status).to.equal(201)
  })
  after(() => api?.stop())

  const helm = (...args: readonly string[]) => {
    const outcome = anyHelm(...args, `--kubeconfig=${api.kubeconfig}`)
    expect(outcome.ok, outcome.stderr).to.equal(true)
    return outcome.stdout
  }
  const secret = async (path = SECRET) => {
    const { status, json } = await api.call('GET', path)
    expect(status, JSON.stringify(json)).to.equal(200)
    return json as { data: Record<string, string>; metadata: { uid: string } }
  }
  const scheme = async () => {
    const { json } = await api.call('GET', '/api/v1/namespaces/apisix/configmaps/apisix-drain')
    const { data } = json as { data: { 'config.yaml': string } }
    return /scheme: (\w+)/.exec(data['config.yaml'])?.[1] ?? 'http'
  }
  const TOKENS = ['token', 'page'].map(name => `/api/v1/namespaces/apisix/secrets/apisix-drain-${name}`)
  let first: Awaited<ReturnType<typeof secret>>
  let tokens: (typeof first)[]

  it('is not made, nor the token, where there is one of the operator', async () => {
    for (const [i, path] of [SECRET, ...TOKENS].entries()) {
      const [folder = '', name] = path.split(/\/(?=[^/]+$)/)
      const { status } = await api.call('POST', folder, { metadata: { name }, data: { mine: btoa(`${i}`) } })
      expect(status).to.equal(201)
    }
    helm('install', ...RELEASE, CHART)
    helm('upgrade', ...RELEASE, CHART)
    for (const [i, path] of [SECRET, ...TOKENS].entries())
      expect((await secret(path)).data).to.deep.equal({ mine: btoa(`${i}`) })
    helm('uninstall', ...RELEASE)
    for (const path of [SECRET, ...TOKENS]) await api.call('DELETE', path)
  })

  it('is made with the plugin while agents and gateways still use plain HTTP', async () => {
    const plain = helm('install', ...RELEASE, CHART, '--set=config.apisix.barrier.scheme=http', OFF)
    expect(plain).not.to.include('plugin values')
    expect((await api.call('GET', SECRET)).status).to.equal(404)

    const said = helm('upgrade', ...RELEASE, CHART, ENABLED, '--set=config.apisix.barrier.scheme=http')
    expect(said).to.include('plugin values --from - --listen http')
    expect(said).to.include('plain HTTP: whoever reads that traffic has the token')
    expect(await scheme()).to.equal('http')
    first = await secret()
    const pem = (key: string) => Buffer.from(first.data[key] ?? '', 'base64').toString()
    const [ca, certificate] = [new X509Certificate(pem('ca.crt')), new X509Certificate(pem('tls.crt'))]
    expect(ca.ca && certificate.verify(ca.publicKey)).to.equal(true)
    expect(certificate.checkPrivateKey(createPrivateKey(pem('tls.key')))).to.equal(true)
    expect(certificate.checkHost('barrier.apisix-drain')).to.equal('barrier.apisix-drain')
    tokens = await Promise.all(TOKENS.map(secret))
    for (const { data } of tokens)
      expect(Buffer.from(Object.values(data)[0] ?? '', 'base64').toString()).to.match(/^\w{32}$/)
  })

  it('is the same after upgrades, a rollback, and a removal with a new installation', async () => {
    const said = helm('upgrade', ...RELEASE, CHART, ENABLED)
    expect(said).not.to.match(/plain HTTP|--listen/)
    expect(await scheme()).to.equal('https')
    expect(await secret()).to.deep.include({ data: first.data })
    helm('upgrade', ...RELEASE, CHART, ENABLED, '--set=commonLabels.team=edge')
    helm('rollback', ...RELEASE, '1')
    expect(await scheme()).to.equal('http')
    helm('upgrade', ...RELEASE, CHART, ENABLED)
    for (const [i, path] of TOKENS.entries()) expect((await secret(path)).data).to.deep.equal(tokens[i]?.data)
    helm('uninstall', ...RELEASE)
    helm('install', ...RELEASE, CHART, ENABLED)
    expect((await secret(TOKENS[0])).data).to.deep.equal(tokens[0]?.data)
    const last = await secret()
    expect(last.data).to.deep.equal(first.data)
    expect(last.metadata.uid).to.equal(first.metadata.uid)
  }).timeout(180_000)

  it('is not used if plain HTTP is set, and the notes say what that means', async () => {
    const said = helm('upgrade', ...RELEASE, CHART, ENABLED, '--set=tls.barrier.enabled=false')
    expect(said).to.include('plugin values --from - --listen http')
    expect(said).to.include('plain HTTP: whoever reads that traffic has the token')
    expect(await scheme()).to.equal('http')
    expect((await secret()).data).to.deep.equal(first.data)
  })
})
