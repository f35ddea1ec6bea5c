import type {
  V1Container,
  V1EnvVar,
  V1ExecAction,
  V1HTTPGetAction,
  V1Lifecycle,
  V1LifecycleHandler,
  V1ObjectMeta,
  V1Pod,
  V1PodSpec
} from '@kubernetes/client-node'
import { parseDuration } from '../../rules/drain/annotations.ts'
import { fieldsOf, listOf, portOf, textOf } from '../../base/read.ts'
import { isIP } from 'node:net'
import type { PodFact, ServiceFact } from '../../rules/drain/facts.ts'

/** The hook that a pod's spec describes. */
export interface HookSpec {
  readonly container: string
  /** The sleep that the hook replaces and that stays its least time, in ms. */
  readonly atLeastMs: number | undefined
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

/** The defaults of the helper (docs/hooks.md). */
const HELPER = {
  name: 'apisix-drain-hook',
  leastVariable: 'APISIX_DRAIN_AT_LEAST',
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

/** The containers that get SIGTERM before a hook of the pod is answered: those without a preStop. Sidecars end after them. */
export const endBefore = (pod: unknown, hooks: readonly HookSpec[]): readonly string[] =>
  containersOf(pod)
    .filter(({ name, lifecycle }) => {
      const { preStop } = fieldsOf<V1Lifecycle>(lifecycle)
      return (preStop ?? undefined) === undefined && !hooks.some(({ container }) => container === name)
    })
    .map(({ name }) => textOf(name) ?? '')

const IMAGE = /^(?:.*\/)?apisix(?:[:@]|$)/

/** Whether a pod looks like a gateway: by its label, or by the image of a container. */
export const isLikeAPISIX = (pod: unknown): boolean =>
  fieldsOf(fieldsOf<V1ObjectMeta>(fieldsOf<V1Pod>(pod).metadata).labels)['app.kubernetes.io/name'] ===
    'apisix' || containersOf(pod).some(({ image }) => IMAGE.test(textOf(image) ?? ''))

const containersOf = (pod: unknown) =>
  listOf(fieldsOf<V1PodSpec>(fieldsOf<V1Pod>(pod).spec).containers).map(fieldsOf<V1Container>)

type Rest = Omit<HookSpec, 'container' | 'isHttpGet'>

/** The hook of an `httpGet`. The kubelet makes this call, so it uses no proxy of the container, and any answer counts as success. */
function getHook(path: string, { host, port }: { readonly host: unknown; readonly port: unknown }): Rest {
  const number = portOf(port)
  return {
    atLeastMs: atLeastOf(path),
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
  const least = optionOf(command, 'at-least') ?? textOf(variable(HELPER.leastVariable)?.value)
  return {
    atLeastMs: parseDuration(least ?? ''),
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
  return {
    atLeastMs: atLeastOf(text),
    named: isNamed(text),
    followsProxy: /\b(?:curl|wget)\b/.test(text) && !/\bno[-_]?proxy\b|\s-Y ?off\b/i.test(text),
    target: targetOf(words[at] ?? ''),
    failsOnError: !usesCurl || call.some(word => /^-[a-zA-Z#]*f/.test(word) || word.startsWith('--fail')),
    // A condition or a loop may be a fallback too. A plain line without a later sleep, or a `wait` for one, has none.
    hasFallback:
      words.slice(at).some(word => /^(?:.*\/)?(?:sleep|wait)$/.test(word)) ||
      words.some(word => CONDITIONS.has(word))
  }
}

const CONDITIONS: ReadonlySet<string> = new Set(['if', 'while', 'until', 'trap'])

const isNamed = (text: string): boolean => /\bpod=/i.test(text)

const atLeastOf = (text: string): number | undefined =>
  parseDuration(/[?&]atLeast=([0-9.a-z]{1,20})/.exec(text)?.[1] ?? '')

function targetOf(url: string): HookTarget | undefined {
  const { hostname = '', port = '', protocol = '' } = (url.startsWith('http') && URL.parse(url)) || {}
  if (hostname === '' || /[$%{]/.test(url.split('/')[2] ?? '')) return undefined
  return { host: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}

// Reads shell commands as far as a check needs. Every step takes linear time, because a tenant may write a megabyte of text.

/** The words and separators (`|`, `||`, `&&`, `;`, a line break, brackets) of a text. Quotes are dropped, so nested commands count too. */
function wordsOfShell(text: string): readonly string[] {
  const joined = text.replaceAll('\\\n', ' ')
  return joined.match(/https?:\/\/[^\s"'`<>|;()]+|\|\||&&|[;|()&\n]|[^\s"'`;|()&]+/g) ?? []
}

const SEPARATORS: ReadonlySet<string> = new Set(['|', '||', '&&', '&', ';', '\n', '(', ')'])

/** The simple command that the word at `index` belongs to, without separators. */
function commandAround(words: readonly string[], index: number): readonly string[] {
  let from = index
  while (from > 0 && !SEPARATORS.has(words[from - 1] ?? '')) from -= 1
  let to = index
  while (to < words.length && !SEPARATORS.has(words[to] ?? '')) to += 1
  return words.slice(from, to)
}

/** The value of a long option: `--name value` or `--name=value`, with one dash or two. */
function optionOf(words: readonly string[], name: string): string | undefined {
  for (const [i, word] of words.entries()) {
    const bare = word.startsWith('--') ? word.slice(2) : word.startsWith('-') ? word.slice(1) : ''
    if (bare === name) return words[i + 1]
    if (bare.startsWith(`${name}=`)) return bare.slice(name.length + 1)
  }
  return undefined
}

/** Finds a Service. `none`: it does not exist; `undefined`: Services of that namespace are not read. */
export type FindService = (namespace: string, name: string) => ServiceFact | 'none' | undefined

/** The mistakes in one hook, each with a remedy; empty if there are none. */
export function hookProblems(hook: HookSpec, pod: PodFact, findService: FindService): readonly string[] {
  const { container, named, followsProxy, failsOnError, hasFallback, isHttpGet } = hook
  const its = `the hook of container ${container}`
  const problems = [targetProblem(hook, pod, findService)]
  if (pod.hostNetwork && !isHttpGet) {
    problems.push(
      `${its} comes from its host's address (hostNetwork), so only a deletion of the pod is drained: give the pod a network of its own`
    )
  }
  if (!named) {
    problems.push(
      `${its} does not name its pod: add namespace and pod to its URL, or it is refused where packets leave with another address`
    )
  }
  if (followsProxy) {
    problems.push(
      `${its} follows the proxy of its environment: add --noproxy "*" (curl), --no-proxy (GNU wget) or -Y off (busybox)`
    )
  }
  if (isHttpGet) {
    problems.push(
      `${its} is an httpGet, so any answer counts and nothing waits after a failure, and it comes from its host's address, so a restart of the container drains nothing: use exec`
    )
  } else {
    if (!failsOnError) problems.push(`${its} takes a refusal of the agent for success: add -f to curl`)
    if (!hasFallback) {
      problems.push(`${its} has no fallback, so nothing waits if no agent answers: add "|| sleep 5" to it`)
    }
  }
  return problems.filter(problem => problem !== undefined)
}

function targetProblem(
  { container, target }: HookSpec,
  pod: PodFact,
  findService: FindService
): string | undefined {
  if (target === undefined) return undefined
  const { host, port } = target
  const its = `the hook of container ${container}`
  if (host === '') return `${its} calls its own pod: write the address of the agents' Service in httpGet.host`
  const named = serviceOf(host, pod.namespace)
  if (named === undefined) return undefined
  const service = findService(named.namespace, named.name)
  if (service === undefined) return undefined
  if (service === 'none') {
    return `${its} calls ${host}, and there is no Service ${named.name} in namespace ${named.namespace}: correct the host of its URL`
  }
  const ports = service.ports.map(({ port: known }) => known)
  // A headless Service has no ports of its own: the pods' ports are used.
  if (ports.length === 0 || ports.includes(port) || service.clusterIps.length === 0) return undefined
  return `${its} calls port ${port}, and Service ${named.namespace}/${named.name} has port ${ports.join(', ')}: correct the port of its URL`
}

/** The Service that a host name means in the cluster; `undefined` for an address, or a name outside the cluster. */
function serviceOf(host: string, namespace: string): { name: string; namespace: string } | undefined {
  if (isIP(host) !== 0 || host.startsWith('[')) return undefined
  const [name = '', second, third] = host.split('.')
  if (second === undefined) return { name, namespace }
  return third === undefined || third === 'svc' ? { name, namespace: second } : undefined
}
