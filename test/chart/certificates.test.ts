import { expect } from 'chai'
import { parse } from 'yaml'
import { selfSigned } from '../../sandbox/kubernetes/tls.ts'
import { bare, only, tryTemplate, type Manifest, type Values } from './helm.ts'
import { podOf } from './pods.ts'

const CA = (await selfSigned(['a.test'])).ca
const ISSUER = { name: 'internal', kind: 'ClusterIssuer' }

/** Both servers of the chart have a certificate by the same values. */
const SERVERS = {
  barrier: {
    on: { 'config.apisix.barrier': {}, 'tls.barrier.enabled': true },
    values: 'tls.barrier',
    host: 'barrier.apisix-drain',
    own: {},
    mounts: [{ key: 'ca.crt', path: 'barrier-ca.crt' }]
  },
  webhook: {
    on: { 'injection.webhook.enabled': true },
    values: 'tls.webhook',
    host: 'apisix-drain.apisix.svc',
    own: { 'tls.webhook.caBundle': CA },
    mounts: [
      { key: 'tls.crt', path: 'webhook.crt' },
      { key: 'tls.key', path: 'webhook.key' }
    ]
  }
} as const

/** Returns the Secrets that the agents mount, without those of keys and tokens. */
const mounted = (manifests: readonly Manifest[]) => {
  const volume = podOf(only(manifests, 'Deployment')).volumes?.find(({ name }) => name === 'secrets')
  type Source = { secret?: { name: string; items: object[] } }
  const projected = volume?.['projected'] as { sources: Source[] } | undefined
  return (projected?.sources ?? []).flatMap(({ secret }) =>
    secret && /tls|mine/.test(secret.name) ? [secret] : []
  )
}
const webhooksOf = (manifests: readonly Manifest[]) => {
  const found = only(manifests, 'MutatingWebhookConfiguration')
  const { webhooks } = found as unknown as { webhooks: { clientConfig: { caBundle?: string } }[] }
  return { annotations: found.metadata.annotations, bundles: webhooks.map(one => one.clientConfig.caBundle) }
}
const base64 = (text: string) => Buffer.from(text).toString('base64')

for (const [server, { on, values, host, own, mounts }] of Object.entries(SERVERS)) {
  const secret = `apisix-drain-${server}-tls`
  const ways: Readonly<Record<string, Values>> = {
    'an existing Secret': { ...on, ...own, [`${values}.existingSecret`]: 'mine' },
    'cert-manager': { ...on, [`${values}.issuerRef`]: ISSUER }
  }

  describe(`the certificate of the ${server}`, () => {
    for (const [way, given] of Object.entries(ways)) {
      it(`with ${way}: no key is rendered, and two renderings are equal, byte for byte`, () => {
        expect(bare(given).filter(({ kind }) => kind === 'Secret')).to.deep.equal([])
        expect(tryTemplate(given).stdout).to.equal(tryTemplate(given).stdout).and.not.equal('')
      })
    }

    it('is that of an existing Secret', () => {
      const manifests = bare(ways['an existing Secret'])
      const found = mounted(manifests).map(({ name, items }) => ({ name, items }))
      expect(found).to.deep.equal([{ name: 'mine', items: mounts }])
      if (server === 'webhook') expect(webhooksOf(manifests).bundles).to.deep.equal([base64(CA), base64(CA)])
    })

    it('is that of a cert-manager Certificate', () => {
      const manifests = bare(ways['cert-manager'])
      const { metadata, spec } = only(manifests, 'Certificate')
      expect(metadata.name).to.equal(secret)
      expect(spec).to.deep.include({ secretName: secret, dnsNames: [host], issuerRef: ISSUER })
      expect(mounted(manifests).map(({ name }) => name)).to.deep.equal([secret])
      if (server === 'webhook') {
        const annotations = { 'cert-manager.io/inject-ca-from': `apisix/${secret}` }
        expect(webhooksOf(manifests)).to.deep.equal({ annotations, bundles: [undefined, undefined] })
      }
    })

    it('is not there by default, and is refused from two sources', () => {
      expect(mounted(bare())).to.deep.equal([])
      const both = { ...ways['an existing Secret'], ...ways['cert-manager'] }
      expect(() => bare(both)).to.throw(/existingSecret and issuerRef both say where the certificate is/)
    })
  })
}

describe('certificates of the chart', () => {
  // test/install has what it makes where it sees the cluster.
  it('and tokens are not made where Helm does not see the cluster: they would differ with each rendering', () => {
    for (const version of ['1.35.4', '1.36.0']) {
      const [first, again] = [1, 2].map(() => tryTemplate({}, undefined, version).stdout)
      expect(first).to.equal(again).and.not.include('kind: Secret')
      expect(first).to.match(/name: apisix-drain-barrier-tls[^]*name: apisix-drain-page/)
    }
    expect(() => bare(SERVERS.webhook.on)).to.throw(/tls.webhook: Helm does not see the cluster here/)
  })

  it('are refused without what they need', () => {
    expect(() => bare({ 'tls.barrier.enabled': true })).to.throw(/there is no Barrier listener/)
    const mine = { ...SERVERS.webhook.on, 'tls.webhook.existingSecret': 'mine' }
    expect(() => bare(mine)).to.throw(/tls.webhook.caBundle: is missing/)
    expect(() => bare({ ...mine, 'tls.webhook.caBundle': 'ca' })).to.throw(/caBundle/)
    const noName = { ...SERVERS.webhook.on, 'tls.webhook.issuerRef.kind': 'Issuer' }
    expect(() => bare(noName)).to.throw(/issuerRef/)
  })

  it('have the names that the agent checks', () => {
    const config = (values: Values) => {
      const maps = bare(values).filter(({ kind }) => kind === 'ConfigMap')
      return maps.find(({ metadata }) => metadata.name === 'apisix-drain')?.['data'] as Record<string, string>
    }
    const { apisix } = parse(config(SERVERS.barrier.on)['config.yaml'] ?? '') as Record<string, unknown>
    expect(apisix).to.deep.nested.include({
      'barrier.scheme': 'https',
      'barrier.serverName': SERVERS.barrier.host
    })
    const injection = parse(
      config({ ...SERVERS.webhook.on, 'tls.webhook.issuerRef': ISSUER })['injection.yaml'] ?? ''
    ) as Record<string, unknown>
    expect(injection['host']).to.equal(SERVERS.webhook.host)
    expect(injection['certificateFile']).to.equal('/run/secrets/apisix-drain/webhook.crt')
  })
})
