/** Merges the plugin into the values of the official APISIX chart. Pure. A value that is in the way is reported as a conflict. */

import { isDeepStrictEqual } from 'node:util'
import { TLS_PATH, withServer, type Listen } from './plugin-server.ts'

type Tree = Readonly<Record<string, unknown>>

interface Merged {
  readonly values: Tree
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
const LUA_PATH = '/opt/apisix-drain/?.lua'
/** The environment variable with the operator's own module hook, which the plugin loads first (hook.lua). */
const OTHER_HOOK = 'APISIX_DRAIN_MODULE_HOOK'
const DICTS = [
  { name: 'apisix-drain', size: '10m' },
  { name: 'apisix-drain-counts', size: '10m' }
]
const SHARED = ['apisix', 'nginx', 'customLuaSharedDicts']
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
  own: Tree,
  { agent, allow, version, listen, tlsSecret }: MergeOptions
): Merged {
  const hasTLS = listen !== 'http'
  const configMap = `${LUA}-${version}`
  const conflicts: string[] = []
  const at = (...path: readonly string[]): unknown =>
    path.reduce<unknown>((value, key) => treeOf(value)[key], own)
  const apisix = treeOf(own['apisix'])
  const nginx = treeOf(apisix['nginx'])
  const snippets = treeOf(nginx['configurationSnippet'])
  const attributes = treeOf(apisix['pluginAttrs'])
  const ours = treeOf(attributes['apisix-drain'])
  const admin = treeOf(apisix['admin'])

  const moduleHook = treeOf(apisix['luaModuleHook'])
  const theirs =
    moduleHook['enabled'] === true && moduleHook['hookPoint'] !== HOOK_POINT
      ? moduleHook['hookPoint']
      : listOf(own['extraEnvVars'])
          .map(treeOf)
          .find(({ name }) => name === OTHER_HOOK)?.['value']
  const added = <T extends Tree>(path: readonly string[], items: readonly T[], key: keyof T & string) => {
    const value = at(...path)
    if (value !== undefined && value !== null && !Array.isArray(value)) {
      conflicts.push(`${path.join('.')}: is no list: correct it first`)
      return value
    }
    const known = listOf(value).map(item => (isOlder(item) ? volumes(configMap)[0] : item))
    const missing = items.filter(item => {
      const same = known.find(one => treeOf(one)[key] === item[key])
      if (same !== undefined && !isDeepStrictEqual(same, item))
        conflicts.push(
          `${path.join('.')}: an item with ${key} ${String(item[key])} is there and differs from the plugin's: rename yours, or remove it if it is of an older release of the plugin`
        )
      return same === undefined
    })
    return [...known, ...missing]
  }
  const sizes = new Set(listOf(at(...SHARED)).map(dict => treeOf(dict)['name']))
  const httpEnd = snippets['httpEnd']
  const server = withServer(typeof httpEnd === 'string' ? httpEnd : '', listen)
  if ('conflict' in server) conflicts.push(`apisix.nginx.configurationSnippet.httpEnd: ${server.conflict}`)
  const values = {
    ...own,
    apisix: {
      ...apisix,
      luaModuleHook: {
        ...moduleHook,
        enabled: true,
        hookPoint: HOOK_POINT,
        ...(theirs === undefined
          ? { luaPath: LUA_PATH, configMapRef: { name: configMap, mounts: [] } }
          : { luaPath: withPath(moduleHook['luaPath']) })
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
        // An existing dictionary keeps its size.
        customLuaSharedDicts: added(
          SHARED,
          DICTS.filter(({ name }) => !sizes.has(name)),
          'name'
        ),
        configurationSnippet: {
          ...snippets,
          httpEnd: 'text' in server ? server.text : httpEnd
        }
      },
      ...(allow.length > 0 && {
        admin: {
          ...admin,
          allow: {
            ...treeOf(admin['allow']),
            ipList: allowed(at('apisix', 'admin', 'allow', 'ipList'), allow)
          }
        }
      })
    },
    ...(theirs !== undefined && {
      extraEnvVars: added(['extraEnvVars'], [{ name: OTHER_HOOK, value: theirs }], 'name')
    }),
    extraVolumes: added(
      ['extraVolumes'],
      [...volumes(configMap), ...(hasTLS ? [{ name: TLS, secret: { secretName: tlsSecret } }] : [])],
      'name'
    ),
    extraVolumeMounts: added(['extraVolumeMounts'], [...MOUNTS, ...(hasTLS ? [TLS_MOUNT] : [])], 'mountPath')
  }
  return { values, conflicts }
}

/** The operator's search path for Lua modules, with the plugin's added. */
const withPath = (path: unknown): string => {
  const paths = typeof path === 'string' ? path.split(';').filter(one => one !== '') : []
  return [...paths.filter(one => one !== LUA_PATH), LUA_PATH].join(';')
}

/** Whether this is the plugin's volume, perhaps of another version. */
const isOlder = (item: unknown): boolean => {
  const { name, configMap } = treeOf(item)
  const used = treeOf(configMap)['name']
  return name === LUA && typeof used === 'string' && (used === LUA || used.startsWith(`${LUA}-`))
}

/** The list with more networks. An empty list stays empty: in the chart it allows every address, and one network would exclude others. */
const allowed = (value: unknown, more: readonly string[]): readonly unknown[] => {
  if (Array.isArray(value) && value.length === 0) return value
  const known = Array.isArray(value) ? value : DEFAULT_ALLOWED
  return [...known, ...more.filter(network => !known.includes(network))]
}

const treeOf = (value: unknown): Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Tree) : {}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
