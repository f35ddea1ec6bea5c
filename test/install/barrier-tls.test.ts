import { expect } from 'chai'
import { CHART, helm as anyHelm, only, render } from '../chart/helm.ts'
import { startApiServer, type ApiServer } from './api-server.ts'
import { onEachKubernetes } from './each-kubernetes.ts'

const RELEASE = ['apisix-drain', '--namespace=apisix']
const SECRET = '/api/v1/namespaces/apisix/secrets/apisix-drain-barrier-tls'
const ENABLED = '--set=plugin.enabled=true'

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
  const secret = async () => {
    const { status, json } = await api.call('GET', SECRET)
    expect(status, JSON.stringify(json)).to.equal(200)
    return json as { data: Record<string, string>; immutable?: boolean; metadata: { uid: string } }
  }
  const scheme = async () => {
    const { json } = await api.call('GET', '/api/v1/namespaces/apisix/configmaps/apisix-drain')
    const { data } = json as { data: { 'config.yaml': string } }
    return /scheme: (\w+)/.exec(data['config.yaml'])?.[1] ?? 'http'
  }
  let first: Awaited<ReturnType<typeof secret>>

  it('is made with the plugin while agents and gateways still use plain HTTP', async () => {
    const plain = helm('install', ...RELEASE, CHART, '--set=config.apisix.barrier.scheme=http')
    expect(plain).not.to.include('plugin values')
    expect((await api.call('GET', SECRET)).status).to.equal(404)

    const said = helm('upgrade', ...RELEASE, CHART, ENABLED, '--set=config.apisix.barrier.scheme=http')
    expect(said).to.include('plugin values --from - --listen both')
    expect(said).to.include('plain HTTP: whoever reads that traffic has the token')
    expect(await scheme()).to.equal('http')
    first = await secret()
    expect(Object.keys(first.data).toSorted()).to.deep.equal(['ca.crt', 'tls.crt', 'tls.key'])
  })

  it('is the same after upgrades, a rollback, and a removal with a new installation', async () => {
    const said = helm('upgrade', ...RELEASE, CHART, ENABLED)
    expect(said).not.to.match(/plain HTTP|--listen/)
    expect(await scheme()).to.equal('https')
    expect(await secret()).to.deep.include({ data: first.data, immutable: true })
    helm('upgrade', ...RELEASE, CHART, ENABLED, '--set=commonLabels.team=edge')
    helm('rollback', ...RELEASE, '1')
    expect(await scheme()).to.equal('http')
    helm('upgrade', ...RELEASE, CHART, ENABLED)
    helm('uninstall', ...RELEASE)
    helm('install', ...RELEASE, CHART, ENABLED)
    const last = await secret()
    expect(last.data).to.deep.equal(first.data)
    expect(last.metadata.uid).to.equal(first.metadata.uid)
  })

  it('cannot be replaced by a rendering that does not see the cluster', async () => {
    const rendered = only(render({ 'plugin.enabled': true }), 'Secret')['data'] as Record<string, string>
    const other = rendered['ca.crt']
    expect(other).not.to.be.oneOf([undefined, first.data['ca.crt']])
    const { status, json } = await api.call('PUT', SECRET, {
      ...(await secret()),
      data: { ...first.data, 'ca.crt': other }
    })
    expect(status).to.equal(422)
    expect(JSON.stringify(json)).to.include('immutable')
    expect((await secret()).data).to.deep.equal(first.data)
  })

  it('is not used if plain HTTP is set, and the notes say what that means', async () => {
    const said = helm('upgrade', ...RELEASE, CHART, ENABLED, '--set=barrierTLS.enabled=false')
    expect(said).to.include('plugin values --from - --listen http')
    expect(said).to.include('plain HTTP: whoever reads that traffic has the token')
    expect(await scheme()).to.equal('http')
    expect((await secret()).data).to.deep.equal(first.data)
  })
})
