import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { LISTENS, serverText, type Listen } from '../../../agent/doctor/plugin-server.ts'
import { print, readValues } from '../../../agent/doctor/run-plugin.ts'
import { mergePluginValues } from '../../../agent/doctor/plugin-values.ts'

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

  it('keep every value of the operator, in lists too, and have every one of the plugin', () => {
    const { values, conflicts } = merge(USED)
    expect(conflicts).to.deep.equal([])
    expect(values.replicaCount).to.equal(3)
    expect(values.control).to.deep.equal(USED.control)
    expect(values.extraVolumes).to.deep.equal([...USED.extraVolumes, ...ours.extraVolumes])
    expect(values.extraVolumeMounts).to.deep.equal([...USED.extraVolumeMounts, ...ours.extraVolumeMounts])
    const { nginx, pluginAttrs, luaModuleHook, admin } = values.apisix
    expect(nginx.workerProcesses).to.equal('4')
    expect(nginx.customLuaSharedDicts).to.deep.equal([
      ...USED.apisix.nginx.customLuaSharedDicts,
      ...ours.apisix.nginx.customLuaSharedDicts
    ])
    expect(nginx.configurationSnippet).to.deep.equal({
      httpStart: 'map_hash_max_size 64;',
      httpEnd: `server { listen 8099; }\n${ours.apisix.nginx.configurationSnippet.httpEnd}`
    })
    expect(pluginAttrs).to.deep.equal({ ...USED.apisix.pluginAttrs, ...ours.apisix.pluginAttrs })
    expect(luaModuleHook).to.deep.equal(ours.apisix.luaModuleHook)
    expect(admin).to.deep.equal(USED.apisix.admin)
  })

  it('have the plugin load a module hook of the operator, from where it was', () => {
    const mine = { enabled: true, luaPath: '/opt/shop/?.lua', hookPoint: 'shop.hook', configMapRef: MINE }
    const { values, conflicts } = merge({ ...USED, apisix: { luaModuleHook: mine } })
    expect(conflicts).to.deep.equal([])
    const luaPath = '/opt/shop/?.lua;/opt/apisix-drain/?.lua'
    const hook = { ...mine, hookPoint: 'apisix.drain.hook', luaPath }
    expect(values.apisix.luaModuleHook).to.deep.equal(hook)
    expect(values.extraEnvVars).to.deep.equal([{ name: 'APISIX_DRAIN_MODULE_HOOK', value: 'shop.hook' }])
    expect(merge(values)).to.deep.equal({ values, conflicts: [] })
    expect(merge({ apisix: { luaModuleHook: { ...mine, enabled: false } } }).values.extraEnvVars).to.equal(
      undefined
    )
  })

  it('are the same when they are merged again', () => {
    const { values } = merge(USED, ['10.0.0.0/8'])
    expect(merge(values, ['10.0.0.0/8'])).to.deep.equal({ values, conflicts: [] })
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

  it('keep a size, an agent and a token file that the operator has set', () => {
    const own = structuredClone(ours)
    own.apisix.nginx.customLuaSharedDicts[0].size = '50m'
    own.apisix.pluginAttrs['apisix-drain'].agent = 'http://other:1'
    expect(merge(own)).to.deep.equal({ values: own, conflicts: [] })
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
  const means: readonly [text: string, value: unknown][] = [
    ['"on"', 'on'],
    ['"no"', 'no'],
    ['"1_000"', '1_000'],
    ['"0o17"', '0o17'],
    ['on', true],
    ['1_000', 1000],
    ['0400', 256],
    ['1:30', '1:30'],
    ['2026-11-26', '2026-11-26'],
    ['"<<"', '<<'],
    ['"."', '.']
  ]
  for (const [text, value] of means)
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

  const refused: readonly [what: string, text: string, why: RegExp][] = [
    ['nothing', '', /it is empty/],
    ['a blank line', ' \n', /it is empty/],
    ['a heading alone', 'USER-SUPPLIED VALUES:\n', /it is empty/],
    ['a comment', '# none\n', /it is no mapping/],
    ['a list', '- a\n', /it is no mapping/],
    ['a key twice', 'a: 1\nb: 2\na: 3\n', /unique at line 3, column 1;/]
  ]
  for (const [what, text, why] of refused)
    it(`is refused with the reason if it has ${what}`, () => {
      const { tree, problems } = read(text)
      expect(tree).to.equal(undefined)
      expect(problems.join()).to.match(why)
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
