import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { selfSigned } from '../../sandbox/kubernetes/tls.ts'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../agent/config/load.ts'
import type { Config } from '../../agent/config/config.ts'
import { bare, CI, only, render, type Manifest, type Values } from './helm.ts'
import { podOf } from './pods.ts'

type Json = { [key: string]: unknown }

interface Source {
  readonly [kind: string]: { readonly name: string; readonly items: readonly { key: string; path: string }[] }
}

const CA = (await selfSigned(['a.test'])).ca

describe('chart configuration', () => {
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'chart-'))))
  afterEach(() => rmSync(folder, { recursive: true }))

  const configMap = (manifests: readonly Manifest[]) =>
    manifests.find(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'apisix-drain'
    ) as Manifest
  const rendered = (manifests: readonly Manifest[]) => {
    const data = configMap(manifests)['data'] as { readonly 'config.yaml': string }
    return parse(data['config.yaml']) as Json
  }
  const sources = (manifests: readonly Manifest[]) =>
    podOf(only(manifests, 'Deployment')).volumes?.find(({ name }) => name === 'secrets')?.['projected'] as {
      readonly defaultMode: number
      readonly sources: readonly Source[]
    }

  /** Returns the rendered configuration as the agent loads it. Every mounted path is a file, as with a kubelet. */
  function load(manifests: readonly Manifest[]): Config {
    const projected = sources(manifests).sources.flatMap(source =>
      Object.values(source).flatMap(({ items }) => items.map(({ path }) => path))
    )
    for (const path of projected) {
      writeFileSync(join(folder, path), path.endsWith('.crt') ? CA : `content of ${path}`)
    }
    const text = stringify(rendered(manifests)).replaceAll('/run/secrets/apisix-drain', folder)
    writeFileSync(join(folder, 'config.yaml'), text)
    const loaded = loadConfig(join(folder, 'config.yaml'))
    if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
    return loaded.config
  }

  for (const file of [undefined, ...readdirSync(CI)]) {
    it(`is accepted by the agent: ${file ?? 'defaults'}`, () => {
      expect(() => load(render({}, file))).not.to.throw()
    })
  }

  it('reaches the Admin port of every gateway pod in standalone mode, where the Service of the Admin API leads to any of them', () => {
    const manifests = bare({ 'networkPolicy.enabled': true })
    const { apisix } = load(manifests)
    const { port } = new URL(apisix.admin!.url)
    const { gateways } = apisix
    if (gateways.kind !== 'pods') throw new Error('gateways are found by their labels')
    const reach = manifests.find(({ metadata }) => metadata.name === 'apisix-drain-reach')?.['spec'] as {
      readonly egress: readonly {
        readonly ports: readonly { readonly port: number }[]
        readonly to?: readonly { readonly podSelector?: { readonly matchLabels: object } }[]
      }[]
    }
    const rule = reach.egress.find(({ ports }) => ports.some(one => one.port === Number(port)))
    expect(rule?.to).to.have.length(1)
    const labels = Object.entries(rule?.to?.[0]?.podSelector?.matchLabels ?? {})
    // The agent finds gateways by every label that the policy requires, so the policy excludes none of them.
    const selected = gateways.selector.split(',')
    expect(labels).not.to.be.empty
    for (const [name, value] of labels) expect(selected).to.include(`${name}=${String(value)}`)
  })

  it('finds the official chart in the same namespace, and the key in the mounted Secret', () => {
    const { apisix, serve } = load(bare())
    expect(apisix.admin!.url).to.equal('http://apisix-admin.apisix:9180')
    expect(apisix.admin!.key.read()).to.equal('content of admin-key')
    expect(apisix.gateways).to.deep.equal({
      kind: 'pods',
      namespace: 'apisix',
      selector: 'app.kubernetes.io/name=apisix'
    })
    expect(apisix.barrier).to.equal(undefined)
    expect(serve.port).to.equal(8080)
  })

  it('elects a leader among the agents of this release, in its namespace', () => {
    expect(load(bare()).leader).to.deep.equal({ lease: 'apisix/apisix-drain' })
    const other = { 'config.leader.lease': 'ops/drainers' }
    expect(load(bare(other)).leader).to.deep.equal({ lease: 'ops/drainers' })
  })

  it('mounts the barrier token only if there is a barrier', () => {
    expect(sources(bare()).sources).to.deep.equal([
      { secret: { name: 'apisix-drain', items: [{ key: 'admin-key', path: 'admin-key' }] } }
    ])
    const manifests = bare({ 'config.apisix.barrier': {} })
    expect(sources(manifests).sources[1]).to.deep.equal({
      secret: { name: 'apisix-drain-token', items: [{ key: 'token', path: 'barrier-token' }] }
    })
    expect(load(manifests).apisix.barrier?.token.read()).to.equal('content of barrier-token')
  })

  it('mounts the dashboard token only if the dashboard requires one', () => {
    const dashboard = (values: object) =>
      load(bare({ 'config.serve.dashboard': values })).serve.dashboard?.auth
    expect(dashboard({ enabled: false })).to.equal(undefined)
    expect(dashboard({ enabled: true, auth: 'none' })).to.deep.equal({ kind: 'none' })
    const auth = dashboard({ enabled: true })
    expect(auth?.kind === 'token' && auth.token.read()).to.equal('content of dashboard-token')
  })

  it('needs no Admin API, and no key of it, with the plugin', () => {
    const manifests = render({ 'config.apisix.admin': null, 'networkPolicy.enabled': true })
    expect(load(manifests).apisix).to.include({ admin: undefined })
    expect(JSON.stringify(manifests)).not.to.match(/admin-key|9180/)
  })

  it('lets only the group of the agent read the secrets', () => {
    expect(sources(bare()).defaultMode).to.equal(0o440)
  })

  it('reads every Secret and CA from its configured place', () => {
    const { apisix } = load(render({}, 'everything-values.yaml'))
    expect(apisix.admin!.ca?.read()).to.equal(CA)
    expect(apisix.barrier?.ca?.read()).to.equal(CA)
    const names = sources(render({}, 'everything-values.yaml')).sources.map(
      source => Object.entries(source)[0]
    )
    expect(names.map(entry => [entry?.[0], entry?.[1].name, entry?.[1].items[0]?.key])).to.deep.equal([
      ['secret', 'gateway-admin', 'admin'],
      ['configMap', 'gateway-ca', 'ca.crt'],
      ['secret', 'gateway-barrier', 'token'],
      ['configMap', 'gateway-ca', 'ca.crt'],
      ['secret', 'apisix-drain-page', 'dashboard-token']
    ])
  })

  it('searches for gateways only in namespaces covered by its Roles', () => {
    const gateways = (values: Values) => load(bare(values)).apisix.gateways
    const pods = { kind: 'pods', selector: 'app.kubernetes.io/name=apisix' }
    expect(gateways({ 'config.kubernetes.namespaces': ['shop'] })).to.deep.equal({
      ...pods,
      namespace: 'apisix'
    })
    const named = { 'config.kubernetes.namespaces': ['shop'], 'config.apisix.gateways.namespace': 'edge' }
    expect(gateways(named)).to.deep.equal({ ...pods, namespace: 'edge' })
    expect(gateways({ 'config.apisix.gateways.namespace': 'edge' })).to.deep.equal({
      ...pods,
      namespace: 'edge'
    })
    const fixed = { static: [{ name: 'edge-1', host: '192.0.2.10' }] }
    const both = { 'config.kubernetes.namespaces': ['shop'], 'config.apisix.gateways': fixed }
    expect(gateways(both)).to.deep.include({ kind: 'static' })
  })

  it('renders no Secret, and no value that resembles a key', () => {
    for (const file of readdirSync(CI)) {
      const manifests = render({}, file)
      expect(
        manifests.filter(({ kind }) => kind === 'Secret'),
        basename(file)
      ).to.deep.equal([])
      const settings = stringify(rendered(manifests))
      expect(settings, basename(file)).not.to.match(/^\s*(key|token|password):/m)
    }
  })

  it('restarts the agents when the configuration changes, and only then', () => {
    const sum = (values: Values) => {
      const { template } = only(bare(values), 'Deployment')['spec'] as {
        template: { metadata: { annotations: Record<string, string> } }
      }
      return template.metadata.annotations['checksum/config']
    }
    expect(sum({ 'config.drain.settle': '20s' })).not.to.equal(sum({}))
    expect(sum({ 'service.port': 80 })).to.equal(sum({}))
  })
})
