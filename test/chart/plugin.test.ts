import { expect } from 'chai'
import { parse } from 'yaml'
import { mergePluginValues } from '../../agent/doctor/plugin-values.ts'
import { versions } from '../../scripts/version.ts'
import { kinds, only, render, type Manifest } from './helm.ts'
import { pluginFiles } from './plugin-files.ts'

const version = versions()[0]?.version ?? ''
const enabled = { 'plugin.enabled': true }
const lua = (manifests: readonly Manifest[]) =>
  manifests.find(({ metadata }) => metadata.name.startsWith('apisix-drain-lua'))
const barrierOf = (manifests: readonly Manifest[]) => {
  const map = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'apisix-drain')
  const { 'config.yaml': text = '' } = (map?.['data'] ?? {}) as Readonly<Record<string, string>>
  return (parse(text) as { apisix: { barrier?: object } }).apisix.barrier
}

describe('plugin.enabled', () => {
  it('makes the ConfigMap with every file, under the name that the values for APISIX mount', () => {
    const made = lua(render(enabled))
    expect(made?.['data']).to.deep.equal(pluginFiles())
    const { values } = mergePluginValues({}, { agent: 'http://a:1', allow: [], version })
    const [volume] = values['extraVolumes'] as readonly { configMap: { name: string } }[]
    expect(made?.metadata.name).to.equal(volume?.configMap.name)
  })

  it('keeps it when the release is upgraded or removed: gateways that mount it could not start again', () =>
    expect(lua(render(enabled))?.metadata.annotations).to.deep.equal({ 'helm.sh/resource-policy': 'keep' }))

  it('fits into the release that Helm stores as one Secret, and into one ConfigMap', () =>
    expect(JSON.stringify(pluginFiles()).length).to.be.below(2 ** 20 / 2))

  it('uses the barrier with its defaults, and keeps settings of it', () => {
    const tokenFile = '/run/secrets/apisix-drain/barrier-token'
    expect(barrierOf(render(enabled))).to.deep.equal({ tokenFile })
    const own = { ...enabled, 'config.apisix.barrier': { port: 9192 } }
    expect(barrierOf(render(own))).to.deep.equal({ port: 9192, tokenFile })
    expect(barrierOf(render())).to.equal(undefined)
  })

  it('makes nothing else, and nothing by default', () => {
    expect(lua(render())).to.equal(undefined)
    expect(kinds(render(enabled))).to.deep.equal([...kinds(render()), 'ConfigMap'].toSorted())
    expect(only(render(enabled), 'Deployment').metadata.name).to.equal('apisix-drain')
  })
})
