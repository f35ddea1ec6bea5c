import { expect } from 'chai'
import { readFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { LISTENS, serverText, mergePluginValues, type Listen } from '../../../agent/doctor/plugin-values.ts'
import { print, readValues } from '../../../agent/doctor/run-plugin.ts'
import { rowsOf } from '../../build/rows.ts'

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
const ours = parse(readFileSync(new URL('../../../plugin-config/helm-values.yaml', import.meta.url), 'utf8'))
/** Parses the printed values. */
function merge(
  own: Readonly<Record<string, unknown>>,
  allow: readonly string[] = [],
  listen: Listen = 'https',
  agent?: string
) {
  const options = { agent, allow, version, listen, tlsSecret: 'apisix-drain-barrier-tls' }
  const { values, conflicts } = mergePluginValues(own, options)
  return { values: JSON.parse(JSON.stringify(values)), conflicts }
}

const MINE = { name: 'shop-lua', mounts: [{ key: 'hook.lua', path: '/opt/shop/shop/hook.lua' }] }

interface Rows {
  readonly refused: readonly { own: string; says: string }[]
  readonly taken: readonly { path: string; value?: unknown }[]
  readonly means: readonly { text: string; value: unknown }[]
  readonly unread: readonly { what: string; text: string; why: string }[]
}
const ROWS = rowsOf('values.yaml', import.meta.url) as Rows

/** Values of an operator who already uses every list to which the plugin adds. */
const USED = {
  replicaCount: 3,
  apisix: {
    admin: { credentials: { admin: 'k' }, allow: { ipList: ['127.0.0.1/24', '192.168.0.0/16'] } },
    pluginAttrs: { prometheus: { export_addr: { port: 9091 } } },
    nginx: {
      workerProcesses: '4',
      customLuaSharedDicts: [{ name: 'mine', size: '1m' }],
      configurationSnippet: { httpStart: 'map_hash_max_size 64;', httpEnd: 'server { listen 8099; }' }
    }
  },
  extraVolumes: [{ name: 'certs', secret: { secretName: 'certs' } }],
  extraVolumeMounts: [{ name: 'certs', mountPath: '/certs' }],
  control: { service: { ip: '0.0.0.0' } }
}

describe('apisix-drain plugin values', () => {
  it('are those of plugin-config for a release without values', () =>
    expect(merge({})).to.deep.equal({ values: ours, conflicts: [] }))

  it('do not replace a module hook of the operator, which has to load ours', () => {
    const mine = { enabled: true, luaPath: '/opt/shop/?.lua', hookPoint: 'shop.hook', configMapRef: MINE }
    const { conflicts } = merge({ ...USED, apisix: { luaModuleHook: mine } })
    expect(conflicts).to.have.length(1)
    expect(conflicts[0]).to.contain('let yours begin with require("apisix.drain.hook")')
    expect(merge({ apisix: { luaModuleHook: { ...mine, enabled: false } } }).conflicts).to.deep.equal([])
  })

  it('replace the ConfigMap of another release of the plugin, in its place, and no other volume', () => {
    for (const older of ['apisix-drain-lua', 'apisix-drain-lua-0.0.9']) {
      const own = structuredClone(ours)
      own.apisix.luaModuleHook.configMapRef.name = older
      own.extraVolumes[0].configMap.name = older
      expect(merge(own)).to.deep.equal({ values: ours, conflicts: [] })
    }
    const foreign = [{ name: 'apisix-drain-lua', configMap: { name: 'patched' } }]
    expect(merge({ extraVolumes: foreign }).conflicts).to.have.length(1)
  })

  it('replace a server that was printed for another way to listen, in its place, and mount the certificate', () => {
    const around = (server: string) => `server { listen 8099; }\n${server}# end\n`
    for (const before of LISTENS) {
      // An editor may have indented the printed server.
      const httpEnd = around(serverText(before).replaceAll(/^/gm, '  '))
      for (const listen of LISTENS) {
        const own = { ...USED, apisix: { nginx: { configurationSnippet: { httpEnd } } } }
        const { values, conflicts } = merge(own, [], listen)
        expect(conflicts).to.deep.equal([])
        const text: string = values.apisix.nginx.configurationSnippet.httpEnd
        expect(text.replaceAll(/\s+/g, ' ')).to.equal(around(serverText(listen)).replaceAll(/\s+/g, ' '))
        const names = values.extraVolumeMounts.map(({ name }: { name: string }) => name)
        expect(names.includes('apisix-drain-tls')).to.equal(listen !== 'http')
      }
    }
  })

  it('leave a server alone that the operator has changed, unless it has no TLS and needs it', () => {
    const changed = (ssl: string) => ({
      apisix: {
        nginx: {
          configurationSnippet: {
            httpEnd: `server { listen 9999${ssl}; location / { content_by_lua_block { require("apisix.drain.api").serve() } } }`
          }
        }
      }
    })
    const kept = (own: object) => (own as typeof ours).apisix.nginx.configurationSnippet.httpEnd
    expect(kept(merge(changed(' ssl')).values)).to.equal(kept(changed(' ssl')))
    expect(kept(merge(changed(''), [], 'http').values)).to.equal(kept(changed('')))
    const { values, conflicts } = merge(changed(''))
    expect(conflicts.join()).to.match(/^apisix.nginx.configurationSnippet.httpEnd: .*has no TLS/)
    expect(kept(values)).to.equal(kept(changed('')))
  })

  it('add networks to those that may call the Admin API, and to the default of the chart', () => {
    const list = (own: Readonly<Record<string, unknown>>) =>
      merge(own, ['10.0.0.0/8']).values.apisix.admin.allow.ipList
    expect(list({})).to.deep.equal(['127.0.0.1/24', '10.0.0.0/8'])
    expect(list({ apisix: { admin: { allow: { ipList: [] } } } })).to.deep.equal([])
    expect(list(USED)).to.deep.equal(['127.0.0.1/24', '192.168.0.0/16', '10.0.0.0/8'])
  })

  it('name each thing that cannot be merged', () => {
    const { conflicts } = merge({
      apisix: {
        nginx: {
          customLuaSharedDicts: 'none',
          configurationSnippet: { httpEnd: 'server { listen 127.0.0.1:9092; }' }
        }
      },
      extraVolumes: [{ name: 'apisix-drain-token', secret: { secretName: 'other' } }],
      extraVolumeMounts: [{ name: 'mine', mountPath: '/opt/apisix-drain-token' }]
    })
    expect(conflicts.map(conflict => conflict.split(':')[0])).to.have.members([
      'apisix.nginx.configurationSnippet.httpEnd',
      'apisix.nginx.customLuaSharedDicts',
      'extraVolumes',
      'extraVolumeMounts'
    ])
  })

  for (const { own, says } of ROWS.refused)
    it(`are refused with the reason: ${own}`, () => {
      const { conflicts } = merge(parse(own))
      expect(conflicts).to.have.length(1)
      expect(conflicts[0]).to.match(new RegExp(says))
    })

  for (const { path, value = 9092 } of ROWS.taken)
    it(`name the part that has the plugin's port: ${path}`, () => {
      const own = path
        .split('.')
        .reduceRight<unknown>((inner, key) => (key === '0' ? [inner] : { [key]: inner }), value)
      const { conflicts } = merge(own as Readonly<Record<string, unknown>>)
      expect(conflicts.map(conflict => conflict.split(': ')[0])).to.deep.equal([path])
    })

  it('leave ports alone that are not of the pod, or not used', () => {
    const own = parse(`{ control: { enabled: false, service: { port: 9092 } },
      service: { http: { servicePort: 9092 }, stream: { udp: [9092] } },
      apisix: { admin: { servicePort: 9092 }, discovery: { registry: { consul: { port: 9092 } } } } }`)
    expect(merge(own).conflicts).to.deep.equal([])
  })

  it('listen at IPv6 addresses as APISIX does, and follow it in a second run', () => {
    const server = ({ values }: ReturnType<typeof merge>) => values.apisix.nginx.configurationSnippet.httpEnd
    const only4 = { apisix: { enableIPv6: false } }
    expect(server(merge({}))).to.match(/listen 0.0.0.0:9092 ssl;\n +listen \[::\]:9092 ssl;/)
    expect(server(merge(only4))).not.to.include('[::]')
    const { values } = merge({})
    expect(server(merge({ ...values, apisix: { ...values.apisix, enableIPv6: false } }))).to.equal(
      server(merge(only4))
    )
  })

  it('have the dictionaries in one place: where both subsystems see them, if they are there', () => {
    const size = '10m; lua_shared_dict apisix-drain 10m; lua_shared_dict apisix-drain-counts 10m'
    const metaLuaSharedDicts = [{ name: 'upstream-healthcheck', size }]
    const { values } = merge({})
    const mine = { name: 'mine', size: '1m' }
    const customLuaSharedDicts = [mine, ...values.apisix.nginx.customLuaSharedDicts]
    const nginx = { ...values.apisix.nginx, customLuaSharedDicts, metaLuaSharedDicts }
    const second = merge({ ...values, apisix: { ...values.apisix, nginx } })
    expect(second.values.apisix.nginx).to.deep.equal({ ...nginx, customLuaSharedDicts: [mine] })
    expect(merge(second.values)).to.deep.equal(second)
  })

  it('keep whatever else is there, and are the same in a second run, whatever it is', () => {
    const leaf = fc.oneof(fc.string({ maxLength: 5 }), fc.integer(), fc.boolean(), fc.constant(null))
    const item = fc.record({ name: fc.constantFrom('a', 'apisix-drain', 'b'), size: fc.constant('5m') })
    const list = fc.oneof(fc.array(item, { maxLength: 3 }), leaf)
    const some = (shape: Record<string, fc.Arbitrary<unknown>>) =>
      fc.oneof(
        { arbitrary: fc.record(shape, { requiredKeys: [] }), weight: 9 },
        { arbitrary: leaf, weight: 1 }
      )
    const tree = fc.record(
      {
        replicaCount: leaf,
        service: some({ http: some({ containerPort: fc.constantFrom(9080, 9092) }) }),
        extraVolumes: list,
        extraEnvVars: list,
        apisix: some({
          enableIPv6: leaf,
          luaModuleHook: some({ enabled: fc.boolean(), hookPoint: leaf, luaPath: leaf }),
          pluginAttrs: some({ 'apisix-drain': some({ agent: leaf, other: leaf }), prometheus: leaf }),
          admin: some({ allow: some({ ipList: fc.oneof(fc.array(fc.string()), leaf) }), port: leaf }),
          nginx: some({
            customLuaSharedDicts: list,
            metaLuaSharedDicts: list,
            configurationSnippet: some({ httpEnd: leaf, main: leaf })
          })
        })
      },
      { requiredKeys: [] }
    )
    fc.assert(
      fc.property(tree, own => {
        const plain = JSON.parse(JSON.stringify(own))
        const first = merge(plain, ['10.0.0.0/8'])
        if (first.conflicts.length > 0) return
        expect(merge(first.values, ['10.0.0.0/8'])).to.deep.equal(first)
        for (const key of ['replicaCount', 'service']) expect(first.values[key]).to.deep.equal(plain[key])
        const begins = (list: readonly unknown[], before: readonly unknown[] | null = []) =>
          expect(list.slice(0, before?.length ?? 0)).to.deep.equal(before ?? [])
        begins(first.values.extraVolumes, plain.extraVolumes)
        const { nginx } = plain.apisix ?? {}
        if (!JSON.stringify(nginx?.metaLuaSharedDicts ?? '').includes('apisix-drain'))
          begins(first.values.apisix.nginx.customLuaSharedDicts, nginx?.customLuaSharedDicts)
        const text = nginx?.configurationSnippet?.httpEnd ?? ''
        expect(first.values.apisix.nginx.configurationSnippet.httpEnd).to.satisfy((all: string) =>
          all.startsWith(text.trimEnd())
        )
        expect(first.values.apisix.pluginAttrs['apisix-drain']).to.deep.include(
          plain.apisix?.pluginAttrs?.['apisix-drain'] ?? {}
        )
      }),
      { numRuns: 500, seed: 42 }
    )
  })

  it('take another agent in a second run', () => {
    const agent = 'http://drain.edge.svc.cluster.local:8080'
    const { values } = merge(merge({}).values, [], 'https', agent)
    expect(values.apisix.pluginAttrs['apisix-drain'].agent).to.equal(agent)
    expect(merge(values).values).to.deep.equal(values)
  })
})

describe('the file of plugin values', () => {
  const read = (text: string) => {
    const directory = mkdtempSync(join(tmpdir(), 'apisix-drain-values-'))
    const problems: string[] = []
    try {
      writeFileSync(join(directory, 'values.yaml'), text)
      return { tree: readValues(join(directory, 'values.yaml'), problems), problems }
    } finally {
      rmSync(directory, { recursive: true })
    }
  }
  for (const { text, value } of ROWS.means)
    it(`reads ${text} as Helm does, and prints what every parser reads so`, () => {
      const { tree } = read(`a: ${text}\n${text.startsWith('"') ? text : '"k"'}: 1\n`)
      expect(tree?.['a']).to.equal(value)
      for (const version of ['1.1', '1.2'] as const)
        expect(parse(print(tree), { version })).to.deep.equal(tree)
    })

  it('may have merge keys and anchors, and prints neither', () => {
    const { tree } = read('x: &x { extraVolumes: [{ name: a }] }\n<<: *x\ny: *x\n')
    expect(tree?.['extraVolumes']).to.deep.equal([{ name: 'a' }])
    expect(print(tree)).not.to.match(/[&*]/)
  })

  for (const { what, text, why } of ROWS.unread)
    it(`is refused with the reason if it has ${what}`, () => {
      const { tree, problems } = read(text)
      expect(tree).to.equal(undefined)
      expect(problems.join()).to.match(new RegExp(why))
    })

  it('is null for a release without values', () => expect(read('null\n').tree).to.deep.equal({}))

  it('means the same afterwards, whatever is in it', () => {
    const word = fc.oneof(
      fc.string({ maxLength: 12 }),
      fc.stringMatching(/^[-+.0-9_eEoOxXbB:~<=]{1,8}$/),
      fc.constantFrom('y', 'N', 'on', 'Off', 'yes', 'null', '~', '.inf', '0x1f', '1e3', 'a\nb\n')
    )
    const { value } = fc.letrec(tie => ({
      value: fc.oneof(
        { maxDepth: 3 },
        word,
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(
          word.filter(key => key !== '__proto__'),
          tie('value'),
          { maxKeys: 3, noNullPrototype: true }
        )
      )
    }))
    fc.assert(
      fc.property(value, tree => {
        const text = print({ tree })
        for (const version of ['1.1', '1.2'] as const)
          expect(parse(text, { version })).to.deep.equal({ tree })
        expect(read(text).tree).to.deep.equal({ tree })
      }),
      { numRuns: 200 }
    )
  })
})
