import { expect } from 'chai'
import { parse } from 'yaml'
import { mergePluginValues } from '../../agent/doctor/plugin-values.ts'
import { versions } from '../../scripts/version.ts'
import { kinds, only, render, type Manifest } from './helm.ts'
import { podOf } from './pods.ts'
import { pluginFiles } from './plugin-files.ts'

const version = versions()[0]?.version ?? ''
const enabled = { 'plugin.enabled': true }
/** The default of `plugin values --tls-secret`. */
const TLS = 'apisix-drain-barrier-tls'
const plain = { ...enabled, 'barrierTLS.enabled': false }
const lua = (manifests: readonly Manifest[]) =>
  manifests.find(({ metadata }) => metadata.name.startsWith('apisix-drain-lua'))
const barrierOf = (manifests: readonly Manifest[]) => {
  const map = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'apisix-drain')
  const { 'config.yaml': text = '' } = (map?.['data'] ?? {}) as Readonly<Record<string, string>>
  return (parse(text) as { apisix: { barrier?: object } }).apisix.barrier
}

/** Returns the volumes that the values of `plugin values` mount in APISIX. */
const mounted = () => {
  const options = { agent: 'http://a:1', allow: [], version, listen: 'https', tlsSecret: TLS } as const
  const { values } = mergePluginValues({}, options)
  return values['extraVolumes'] as readonly {
    configMap?: { name: string }
    secret?: { secretName: string }
  }[]
}

describe('plugin.enabled', () => {
  it('makes the ConfigMap with every file, under the name that the values for APISIX mount', () => {
    const made = lua(render(enabled))
    expect(made?.['data']).to.deep.equal(pluginFiles())
    expect(made?.metadata.name).to.equal(mounted()[0]?.configMap?.name)
  })

  it('keeps it when the release is upgraded or removed: gateways that mount it could not start again', () =>
    expect(lua(render(enabled))?.metadata.annotations).to.deep.equal({ 'helm.sh/resource-policy': 'keep' }))

  it('fits into the release that Helm stores as one Secret, and into one ConfigMap', () =>
    expect(JSON.stringify(pluginFiles()).length).to.be.below(2 ** 20 / 2))

  it('uses the barrier with its defaults, and keeps settings of it', () => {
    const barrier = {
      tokenFile: '/run/secrets/apisix-drain/barrier-token',
      caFile: '/run/secrets/apisix-drain/barrier-ca.crt',
      scheme: 'https',
      serverName: 'barrier.apisix-drain'
    }
    expect(barrierOf(render(enabled))).to.deep.equal(barrier)
    const own = { ...enabled, 'config.apisix.barrier': { port: 9192 } }
    expect(barrierOf(render(own))).to.deep.equal({ ...barrier, port: 9192 })
    expect(barrierOf(render())).to.equal(undefined)
  })

  it('makes nothing but the certificate besides, and nothing by default', () => {
    expect(lua(render())).to.equal(undefined)
    expect(kinds(render(enabled))).to.deep.equal([...kinds(render()), 'ConfigMap', 'Secret'].toSorted())
    expect(only(render(enabled), 'Deployment').metadata.name).to.equal('apisix-drain')
  })

  it('calls the gateways by https, with the certificate that the values for APISIX mount', () => {
    const secret = only(render(enabled), 'Secret')
    expect(secret.metadata.name).to.equal(TLS)
    expect(mounted().map(volume => volume.secret?.secretName)).to.include(TLS)
    // `helm template` does not see the cluster, and makes another CA. The API server must refuse that CA, so the Secret is immutable.
    expect(secret['immutable']).to.equal(true)
  })

  it('calls them by plain HTTP only if that is set', () => {
    const tokenFile = '/run/secrets/apisix-drain/barrier-token'
    expect(barrierOf(render(plain))).to.deep.equal({ scheme: 'http', tokenFile })
    expect(render(plain).some(({ kind }) => kind === 'Secret')).to.equal(false)
    // Without `plugin.enabled`, or with an operator's own CA, it makes no Secret.
    expect(barrierOf(render({ 'config.apisix.barrier': {} }))).to.deep.equal({ scheme: 'https', tokenFile })
    const own = { ...enabled, 'barrierCA.existingConfigMap': 'mine' }
    expect(render(own).some(({ kind }) => kind === 'Secret')).to.equal(false)
  })

  it('can make the certificate while the agents still use plain HTTP, for an upgrade without a gap', () => {
    const between = { ...enabled, 'config.apisix.barrier.scheme': 'http' }
    expect(only(render(between), 'Secret').metadata.name).to.equal(TLS)
    const tokenFile = '/run/secrets/apisix-drain/barrier-token'
    expect(barrierOf(render(between))).to.deep.equal({ scheme: 'http', tokenFile })
    const volume = podOf(only(render(between), 'Deployment')).volumes?.find(({ name }) => name === 'secrets')
    expect(JSON.stringify(volume)).not.to.include('barrier-ca.crt')
  })
})
