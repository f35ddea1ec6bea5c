import type {
  V1Container,
  V1EnvVar,
  V1ExecAction,
  V1HTTPGetAction,
  V1Lifecycle,
  V1LifecycleHandler,
  V1Pod,
  V1PodSpec
} from '@kubernetes/client-node'
import { parseDuration } from '../../rules/drain/duration.ts'
import { fieldsOf, listOf, portOf, textOf } from '../../base/read.ts'
import { commandAround, fallbackMs, optionOf, secondsOf, timeoutMs, wordsOfShell } from './shell-words.ts'

/** The hook that a pod's spec describes. */
export interface HookSpec {
  readonly container: string
  /** The longest time of the hook in ms: `timeout`, curl's `-m` or `?timeout=`, plus the fallback's sleep; or the helper's budget. */
  readonly longestMs: number | undefined
  /** Whether the call identifies its pod by name. A call without it may be refused (docs/decisions/0022). */
  readonly named: boolean
  /** Whether the call uses a proxy from the container's environment. The agent then sees the proxy's address instead of the pod's. */
  readonly followsProxy: boolean
  /** The called address; `undefined` if it depends on a variable. An empty host means the pod itself (`httpGet` without a host). */
  readonly target: HookTarget | undefined
  /** Whether the program treats an error status as a failure. */
  readonly failsOnError: boolean
  /** Whether a command runs if the call fails. */
  readonly hasFallback: boolean
  readonly isHttpGet: boolean
}

interface HookTarget {
  readonly host: string
  readonly port: number
}

/** The defaults of the helper (docs/hooks.md). The budget includes the fallback. */
const HELPER = {
  name: 'apisix-drain-hook',
  budgetMs: 24_000,
  budgetVariable: 'APISIX_DRAIN_BUDGET',
  urlVariable: 'APISIX_DRAIN_URL',
  url: 'http://apisix-drain.apisix:8080'
}
const PATH = '/v1/prestop'

/** The containers of a raw pod whose preStop calls `/v1/prestop`, or runs the helper. Never throws: an unreadable hook is skipped. */
export function hooksOf(pod: unknown): readonly HookSpec[] {
  const spec = fieldsOf<V1PodSpec>(fieldsOf<V1Pod>(pod).spec)
  return [...listOf(spec.containers), ...listOf(spec.initContainers)].flatMap(raw => {
    const container = fieldsOf<V1Container>(raw)
    const preStop = fieldsOf<V1LifecycleHandler>(fieldsOf<V1Lifecycle>(container.lifecycle).preStop)
    const found = { container: textOf(container.name) ?? '', isHttpGet: false }
    const get = fieldsOf<V1HTTPGetAction>(preStop.httpGet)
    const path = textOf(get.path) ?? ''
    if (path.includes(PATH)) return [{ ...found, ...getHook(path, get), isHttpGet: true }]
    const command = listOf(fieldsOf<V1ExecAction>(preStop.exec).command).filter(
      word => typeof word === 'string'
    )
    if (command[0]?.split('/').at(-1) === HELPER.name)
      return [{ ...found, ...helperHook(command, listOf(container.env)) }]
    const text = command.join(' ')
    return text.includes(PATH) ? [{ ...found, ...shellHook(text) }] : []
  })
}

type Rest = Omit<HookSpec, 'container' | 'isHttpGet'>

/** The hook of an `httpGet`. The kubelet makes this call, so it uses no proxy of the container, and any answer counts as success. */
function getHook(path: string, { host, port }: { readonly host: unknown; readonly port: unknown }): Rest {
  const number = portOf(port)
  return {
    longestMs: timeoutOfQuery(path),
    named: isNamed(path),
    followsProxy: false,
    target: number === undefined ? undefined : { host: textOf(host) ?? '', port: number },
    failsOnError: false,
    hasFallback: false
  }
}

function helperHook(command: readonly string[], env: readonly unknown[]): Rest {
  const variable = (wanted: string) => env.map(fieldsOf<V1EnvVar>).find(({ name }) => name === wanted)
  const urlVariable = variable(HELPER.urlVariable)
  const url = optionOf(command, 'url') ?? (urlVariable ? textOf(urlVariable.value) : HELPER.url)
  const budget = optionOf(command, 'budget') ?? textOf(variable(HELPER.budgetVariable)?.value)
  const budgetMs = parseDuration(budget ?? '') ?? HELPER.budgetMs
  return {
    longestMs: budgetMs,
    named: true,
    followsProxy: false,
    target: targetOf(url ?? ''),
    failsOnError: true,
    hasFallback: true
  }
}

function shellHook(text: string): Rest {
  const words = wordsOfShell(text)
  const at = words.findIndex(word => word.includes(PATH))
  const call = commandAround(words, at)
  const usesCurl = call.some(word => word.split('/').at(-1) === 'curl')
  const waits = [timeoutMs(words), usesCurl ? maxTimeOf(call) : undefined, timeoutOfQuery(text)].filter(
    wait => wait !== undefined
  )
  const callMs = waits.length === 0 ? undefined : Math.min(...waits)
  return {
    longestMs: callMs === undefined ? undefined : callMs + (fallbackMs(words) ?? 0),
    named: isNamed(text),
    followsProxy: /\b(?:curl|wget)\b/.test(text) && !/\bno[-_]?proxy\b/i.test(text),
    target: targetOf(words[at] ?? ''),
    failsOnError: !usesCurl || call.some(word => /^-[a-zA-Z#]*f/.test(word) || word.startsWith('--fail')),
    // A condition or a loop may be a fallback too. Only a plain line without `||` certainly has no fallback.
    hasFallback: words.indexOf('||', at) > 0 || words.some(word => CONDITIONS.has(word))
  }
}

const CONDITIONS: ReadonlySet<string> = new Set(['if', 'while', 'until', 'trap'])

const isNamed = (text: string): boolean => /\bpod=/i.test(text)

const timeoutOfQuery = (text: string): number | undefined =>
  parseDuration(/[?&]timeout=([0-9.a-z]{1,20})/.exec(text)?.[1] ?? '')

/** curl's limit in ms: `-m 25`, `-m25`, `-fsSm 25`, `--max-time 25`. */
function maxTimeOf(call: readonly string[]): number | undefined {
  for (const [i, word] of call.entries()) {
    const [found, digits] = /^-[a-zA-Z]*m(\d[\d.]{0,9})?$/.exec(word) ?? []
    if (found !== undefined) return secondsOf(digits ?? call[i + 1])
  }
  return secondsOf(optionOf(call, 'max-time'))
}

function targetOf(url: string): HookTarget | undefined {
  const { hostname = '', port = '', protocol = '' } = (url.startsWith('http') && URL.parse(url)) || {}
  if (hostname === '' || /[$%{]/.test(url.split('/')[2] ?? '')) return undefined
  return { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}
