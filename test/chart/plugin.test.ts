import { expect } from 'chai'
import { parse } from 'yaml'
import { mergePluginValues } from '../../agent/doctor/plugin-values.ts'
import { versions } from '../../scripts/version.ts'
import { bare, kinds, only, type Manifest } from './helm.ts'
import { podOf } from './pods.ts'
import { pluginFiles } from './plugin-files.ts'

const version = versions()[0]?.version ?? ''
const enabled = { 'plugin.enabled': true }
/** The default of `plugin values --tls-secret`. */
const TLS = 'apisix-drain-barrier-tls'
const plain = { ...enabled, 'tls.barrier.enabled': false }
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
    const made = lua(bare(enabled))
    expect(made?.['data']).to.deep.equal(pluginFiles())
    expect(made?.metadata.name).to.equal(mounted()[0]?.configMap?.name)
  })

  it('keeps it when the release is upgraded or removed: gateways that mount it could not start again', () =>
    expect(lua(bare(enabled))?.metadata.annotations).to.deep.equal({ 'helm.sh/resource-policy': 'keep' }))

  it('fits into the release that Helm stores as one Secret, and into one ConfigMap', () =>
    expect(JSON.stringify(pluginFiles()).length).to.be.below(2 ** 20 / 2))

  it('uses the barrier with its defaults, and keeps settings of it', () => {
    const barrier = {
      tokenFile: '/run/secrets/apisix-drain/barrier-token',
      caFile: '/run/secrets/apisix-drain/barrier-ca.crt',
      scheme: 'https',
      serverName: 'barrier.apisix-drain'
    }
    expect(barrierOf(bare(enabled))).to.deep.equal(barrier)
    const own = { ...enabled, 'config.apisix.barrier': { port: 9192 } }
    expect(barrierOf(bare(own))).to.deep.equal({ ...barrier, port: 9192 })
    expect(barrierOf(bare())).to.equal(undefined)
  })

  it('makes nothing else without the cluster, and nothing if it is off', () => {
    expect(lua(bare())).to.equal(undefined)
    expect(kinds(bare(enabled))).to.deep.equal([...kinds(bare()), 'ConfigMap'].toSorted())
    expect(only(bare(enabled), 'Deployment').metadata.name).to.equal('apisix-drain')
  })

  it('calls the gateways by https, with the certificate that the values for APISIX mount', () => {
    const [volume] = podOf(only(bare(enabled), 'Deployment')).volumes?.slice(-1) ?? []
    expect(JSON.stringify(volume)).to.include(TLS)
    expect(mounted().map(volume => volume.secret?.secretName)).to.include(TLS)
  })

  it('calls them by plain HTTP only if that is set', () => {
    const tokenFile = '/run/secrets/apisix-drain/barrier-token'
    expect(barrierOf(bare(plain))).to.deep.equal({ scheme: 'http', tokenFile })
    expect(barrierOf(bare({ 'config.apisix.barrier': {} }))).to.deep.equal({ scheme: 'https', tokenFile })
  })

  it('can make the certificate while the agents still use plain HTTP, for an upgrade without a gap', () => {
    const between = { ...enabled, 'config.apisix.barrier.scheme': 'http' }
    const tokenFile = '/run/secrets/apisix-drain/barrier-token'
    expect(barrierOf(bare(between))).to.deep.equal({ scheme: 'http', tokenFile })
    const volume = podOf(only(bare(between), 'Deployment')).volumes?.find(({ name }) => name === 'secrets')
    expect(JSON.stringify(volume)).not.to.include('barrier-ca.crt')
  })
})
