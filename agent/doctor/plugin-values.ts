/** Merges the plugin into the values of the official APISIX chart. Pure. A value that is in the way is reported as a conflict. */

import { isDeepStrictEqual } from 'node:util'
import { fieldsOf, listOf, type Fields } from '../base/read.ts'
export const PORT = 9092
/** The schemes of a listener. */
export const LISTENS = ['https', 'http'] as const
export type Listen = (typeof LISTENS)[number]
/** The folder at which the Secret with the certificate is mounted. */
export const TLS_PATH = '/opt/apisix-drain-tls'

interface Merged {
  readonly values: Fields
  /** The parts that cannot be merged, each with its key and the needed change; empty if there are none. */
  readonly conflicts: readonly string[]
}

interface MergeOptions {
  /** The agents' URL, which a starting gateway calls. Absent: the one of the values, or AGENT. */
  readonly agent: string | undefined
  /** Networks to add to those that may call the Admin API. Empty: the list of the values stays as it is. */
  readonly allow: readonly string[]
  /** The version of the plugin. The agent's chart makes one ConfigMap for each version. */
  readonly version: string
  readonly listen: Listen
  /** The Secret with the certificate of the listeners, which the agent's chart makes. */
  readonly tlsSecret: string
}

const AGENT = 'http://apisix-drain.apisix.svc.cluster.local:8080'
const LUA = 'apisix-drain-lua'
const TOKEN = 'apisix-drain-token'
const TLS = 'apisix-drain-tls'
/** The networks that the chart allows if the operator's values have no `ipList`. */
const DEFAULT_ALLOWED = ['127.0.0.1/24']

const HOOK_POINT = 'apisix.drain.hook'
const OWN_HOOK = 'let yours begin with require("apisix.drain.hook"), and add the other parts by hand'
const LUA_PATH = '/opt/apisix-drain/?.lua'
const DICTS = [
  { name: 'apisix-drain', size: '10m' },
  { name: 'apisix-drain-counts', size: '10m' }
]
const volumes = (configMap: string) => [
  { name: LUA, configMap: { name: configMap } },
  { name: TOKEN, secret: { secretName: TOKEN } }
]
const MOUNTS = [
  { name: LUA, mountPath: '/opt/apisix-drain/apisix/drain', readOnly: true },
  { name: TOKEN, mountPath: '/opt/apisix-drain-token', readOnly: true }
]
const TLS_MOUNT = { name: TLS, mountPath: TLS_PATH, readOnly: true }

/**
 * The values of a release, with the plugin merged in.
 *
 * @param own the values of the release, as `helm get values -o yaml` prints them
 */
export function mergePluginValues(
  own: Fields,
  { agent, allow, version, listen, tlsSecret }: MergeOptions
): Merged {
  const hasTLS = listen !== 'http'
  const configMap = `${LUA}-${version}`
  const conflicts = [...notOfChart(own), ...portsTaken(own)]
  const apisix = fieldsOf(own['apisix'])
  const nginx = fieldsOf(apisix['nginx'])
  const snippets = fieldsOf(nginx['configurationSnippet'])
  const attributes = fieldsOf(apisix['pluginAttrs'])
  const ours = fieldsOf(attributes['apisix-drain'])
  const admin = fieldsOf(apisix['admin'])

  const moduleHook = fieldsOf(apisix['luaModuleHook'])
  if (moduleHook['enabled'] === true && moduleHook['hookPoint'] !== HOOK_POINT)
    conflicts.push(`apisix.luaModuleHook: APISIX loads one module hook: ${OWN_HOOK}`)
  const added = <T extends Fields>(path: string, items: readonly T[], key: keyof T & string) => {
    const known = listOf(own[path]).map(item => (isOlder(item) ? volumes(configMap)[0] : item))
    const missing = items.filter(item => {
      const same = known.find(one => fieldsOf(one)[key] === item[key])
      if (same !== undefined && !isDeepStrictEqual(same, item))
        conflicts.push(
          `${path}: an item with ${key} ${String(item[key])} is there and differs from the plugin's: rename yours, or remove it if it is of an older release of the plugin`
        )
      return same === undefined
    })
    return [...known, ...missing]
  }
  // Existing dictionaries keep their size. For L4 they are where both subsystems see them, and only there (docs/long-lived.md#l4).
  const dicts = listOf(nginx['customLuaSharedDicts'])
  const isOurs = (dict: unknown) => DICTS.some(({ name }) => name === fieldsOf(dict)['name'])
  const isForL4 = /[ "]apisix-drain[ "]/.test(JSON.stringify(nginx['metaLuaSharedDicts'] ?? ''))
  const shared = isForL4
    ? dicts.filter(dict => !isOurs(dict))
    : [...dicts, ...DICTS.filter(({ name }) => !dicts.some(dict => fieldsOf(dict)['name'] === name))]
  const httpEnd = snippets['httpEnd']
  const server = withServer(
    typeof httpEnd === 'string' ? httpEnd : '',
    listen,
    apisix['enableIPv6'] !== false
  )
  if ('conflict' in server) conflicts.push(`apisix.nginx.configurationSnippet.httpEnd: ${server.conflict}`)
  const values = {
    ...own,
    apisix: {
      ...apisix,
      luaModuleHook: {
        ...moduleHook,
        enabled: true,
        hookPoint: HOOK_POINT,
        luaPath: LUA_PATH,
        configMapRef: { name: configMap, mounts: [] }
      },
      pluginAttrs: {
        ...attributes,
        'apisix-drain': {
          token_file: '/opt/apisix-drain-token/token',
          agent: AGENT,
          ...ours,
          ...(agent !== undefined && { agent })
        }
      },
      nginx: {
        ...nginx,
        customLuaSharedDicts: shared,
        configurationSnippet: {
          ...snippets,
          httpEnd: 'text' in server ? server.text : httpEnd
        }
      },
      ...(allow.length > 0 && {
        admin: {
          ...admin,
          allow: {
            ...fieldsOf(admin['allow']),
            ipList: allowed(fieldsOf(admin['allow'])['ipList'], allow)
          }
        }
      })
    },
    extraVolumes: added(
      'extraVolumes',
      [...volumes(configMap), ...(hasTLS ? [{ name: TLS, secret: { secretName: tlsSecret } }] : [])],
      'name'
    ),
    extraVolumeMounts: added('extraVolumeMounts', [...MOUNTS, ...(hasTLS ? [TLS_MOUNT] : [])], 'mountPath')
  }
  return { values, conflicts: [...conflicts, ...wrongKinds(values, own)] }
}

/** Some values of the chart before 2.0.0. */
const OLD = ['gateway', 'admin', 'nginx', 'pluginAttrs', 'luaModuleHook', 'configurationSnippet', 'discovery']

/** Why the chart would not read these values as they are meant, or would not find the plugin in them. */
function notOfChart(own: Fields): string[] {
  const apisix = fieldsOf(own['apisix'])
  if (typeof own['kind'] === 'string' && own['apiVersion'] !== undefined)
    return [`kind: is ${own['kind']}: give only the values inside of it, or the output of helm get values`]
  if (kindOf(apisix['apisix']) === 'mapping')
    return [
      'apisix.apisix: these are values of a chart around the official one: give what is below apisix only'
    ]
  if (fieldsOf(apisix['fullCustomConfig'])['enabled'] === true)
    return [
      'apisix.fullCustomConfig: the chart then renders no other value: add the plugin to it by hand (plugin-config/README.md)'
    ]
  return OLD.filter(key => own[key] !== undefined).map(
    key =>
      `${key}: is of the chart before 2.0.0, and later ones ignore it: upgrade the chart first, with its new values`
  )
}

const kindOf = (value: unknown) =>
  typeof value === 'string'
    ? 'text'
    : Array.isArray(value)
      ? 'list'
      : typeof value === 'object'
        ? 'mapping'
        : 'value'

/** The values of another kind than the merged ones: Helm would fail, or ignore them. */
function wrongKinds(merged: unknown, own: unknown, path: readonly string[] = []): string[] {
  if (merged === own || own === undefined || own === null || kindOf(merged) === 'value') return []
  if (kindOf(merged) !== kindOf(own)) return [`${path.join('.')}: is no ${kindOf(merged)}: correct it first`]
  return Object.entries(fieldsOf(merged)).flatMap(([key, value]) =>
    wrongKinds(value, fieldsOf(own)[key], [...path, key])
  )
}

/** The parts of the values with ports of the gateway's pod, and keys below them with ports of other hosts. */
const WITH_PORTS = ['apisix', 'control', 'service', 'extraContainers']
const ELSEWHERE: ReadonlySet<string> = new Set(['discovery', 'vault', 'apisix-drain', 'udp'])
const LISTENS_AT = /^(?:.*[pP]ort|addr|tcp|listen)$/
const NOT_OF_PODS = /^(?:service|node|host|target)Port$/

/** Where another part of the pod uses the plugin's port: nginx or the other container would not start. */
function portsTaken(own: Fields): string[] {
  const taken: string[] = []
  const walk = (value: unknown, path: readonly string[], key: string): void => {
    if (Array.isArray(value)) for (const [i, item] of value.entries()) walk(item, [...path, String(i)], key)
    else if (typeof value === 'object' && value !== null) {
      if (fieldsOf(value)['enabled'] === false) return
      for (const [name, inner] of Object.entries(value))
        if (!ELSEWHERE.has(name)) walk(inner, [...path, name], name)
    } else if (
      path.includes('configurationSnippet')
        ? isListening(String(value))
        : LISTENS_AT.test(key) && !NOT_OF_PODS.test(key) && /(?:^|:)9092$/.test(String(value))
    )
      taken.push(
        `${path.join('.')}: uses port ${PORT}, which the plugin needs: move it, or give the plugin another port by hand (apisix.barrier.port in the agent)`
      )
  }
  for (const root of WITH_PORTS) walk(own[root], [root], root)
  return taken
}

/** Whether this is the plugin's volume, perhaps of another version. */
const isOlder = (item: unknown): boolean => {
  const { name, configMap } = fieldsOf(item)
  const used = fieldsOf(configMap)['name']
  return name === LUA && typeof used === 'string' && (used === LUA || used.startsWith(`${LUA}-`))
}

/** The list with more networks. An empty list stays empty: in the chart it allows every address, and one network would exclude others. */
const allowed = (value: unknown, more: readonly string[]): readonly unknown[] => {
  if (Array.isArray(value) && value.length === 0) return value
  const known = Array.isArray(value) ? value : DEFAULT_ALLOWED
  return [...known, ...more.filter(network => !known.includes(network))]
}

const tls = `
  ssl_certificate ${TLS_PATH}/tls.crt;
  ssl_certificate_key ${TLS_PATH}/tls.key;`

/** @param ipv6 listen at IPv6 addresses too, as APISIX does unless `enableIPv6` is false */
export const serverText = (listen: Listen, ipv6 = true): string => `server {
  ${(ipv6 ? ['0.0.0.0', '[::]'] : ['0.0.0.0'])
    .map(ip => `listen ${ip}:${PORT}${listen === 'http' ? '' : ' ssl'};`)
    .join('\n  ')}${listen === 'http' ? '' : tls}
  access_log off;
  client_max_body_size 2m;
  client_body_buffer_size 1m;
  location / {
    content_by_lua_block { require("apisix.drain.api").serve() }
  }
}
`

/** A pattern for each text of `serverText`, which matches with any indentation. */
const OURS = LISTENS.flatMap(listen => [serverText(listen), serverText(listen, false)]).map(text => {
  const words = text.trim().split(/\s+/)
  return new RegExp(words.map(word => word.replaceAll(/\W/g, String.raw`\$&`)).join(String.raw`\s+`))
})

/** Whether a server other than the plugin's listens on its port. */
const isListening = (text: string): boolean =>
  !text.includes('apisix.drain.api') && new RegExp(String.raw`\blisten\s[^;]*\b${PORT}\b`).test(text)

/**
 * The text of `httpEnd` with the plugin's server in it. The plugin's server block is replaced where it stands, unless the operator
 * has changed it.
 * @returns the text, or why the operator must change it
 */
function withServer(text: string, listen: Listen, ipv6: boolean): { text: string } | { conflict: string } {
  const ours = OURS.find(one => one.test(text))
  const server = serverText(listen, ipv6)
  if (ours) return { text: text.replace(ours, () => server.trimEnd()) }
  if (text.includes('apisix.drain.api'))
    return listen === 'http' || /\blisten\s[^;]*\bssl\b/.test(text)
      ? { text }
      : {
          conflict: `the server of the plugin is not as it was printed, and has no TLS: add ssl and a certificate by hand (docs/install.md), or use --listen http with tls.barrier.enabled=false in the agent`
        }
  return { text: text === '' ? server : `${text.trimEnd()}\n${server}` }
}
