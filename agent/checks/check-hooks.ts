import type {
  V1Container,
  V1ExecAction,
  V1HTTPGetAction,
  V1Lifecycle,
  V1LifecycleHandler,
  V1Pod,
  V1PodSpec
} from '@kubernetes/client-node'
import { parseDuration } from '../drain/duration.ts'
import { fieldsOf, listOf, textOf, type FieldsOf } from '../base/read.ts'

/** The hook that a pod's spec describes. */
interface HookSpec {
  readonly container: string
  /** The hook's own limit in ms: `timeout`, curl's `-m`, `?timeout=`, plus the fallback's sleep; or the helper's budget. */
  readonly longestMs: number | undefined
  /** Whether the call identifies its pod by name or token. A call that has only an address may be refused (docs/decisions/0022). */
  readonly named: boolean
  /** Whether the call goes through a proxy that the container's environment names: the agent then sees the proxy's address. */
  readonly followsProxy: boolean
}

/** The helper keeps to its budget, the fallback included (docs/hooks.md), in ms. */
const HELPER = { name: 'apisix-drain-hook', budgetMs: 24_000 }

/** The containers of a raw pod whose preStop calls `/v1/prestop`, or runs the helper. Never throws: an unreadable hook is skipped. */
export function hooksOf(pod: unknown): readonly HookSpec[] {
  const spec = fieldsOf<V1PodSpec>(fieldsOf<V1Pod>(pod).spec)
  return [...listOf(spec.containers), ...listOf(spec.initContainers)].flatMap(raw => {
    const container = fieldsOf<V1Container>(raw)
    const text = textOfHook(fieldsOf<V1LifecycleHandler>(fieldsOf<V1Lifecycle>(container.lifecycle).preStop))
    const name = textOf(container.name) ?? ''
    if (runsHelper(text))
      return [{ container: name, longestMs: budget(text), named: true, followsProxy: false }]
    if (!text.includes('/v1/prestop')) return []
    return [
      { container: name, longestMs: longest(text), named: isNamed(text), followsProxy: followsProxy(text) }
    ]
  })
}

function textOfHook(preStop: FieldsOf<V1LifecycleHandler>): string {
  const command = listOf(fieldsOf<V1ExecAction>(preStop.exec).command).filter(
    word => typeof word === 'string'
  )
  return [...command, textOf(fieldsOf<V1HTTPGetAction>(preStop.httpGet).path) ?? ''].join(' ')
}

/** The helper as the program itself, not as an argument of another one. */
const runsHelper = (text: string): boolean => new RegExp(`^(?:\\S*/)?${HELPER.name}(?:\\s|$)`).test(text)

const isNamed = (text: string): boolean => /\bpod=|\bauthorization:/i.test(text)

/** The kubelet's own call (`httpGet`) does not use the container's proxy. */
const followsProxy = (text: string): boolean =>
  /\b(?:curl|wget)\b/.test(text) && !/\bno[-_]?proxy\b/i.test(text)

const budget = (text: string): number =>
  parseDuration(/\s--?budget[ =]([0-9.a-z]+)/.exec(text)?.[1] ?? '') ?? HELPER.budgetMs

function longest(text: string): number | undefined {
  const waits = [
    seconds(/(?:^|\s)timeout\s+(?:-[ks]\s+\S+\s+|-\S+\s+)*(\d+(?:\.\d+)?)s?\s/.exec(text)?.[1]),
    seconds(/(?:\s-[a-zA-Z]*m\s*|--max-time[ =])(\d+(?:\.\d+)?)/.exec(text)?.[1]),
    parseDuration(/[?&]timeout=([0-9.a-z]+)/.exec(text)?.[1] ?? '')
  ].filter(wait => wait !== undefined)
  if (waits.length === 0) return undefined
  const fallback = seconds(/\|\|\s*(?:exec\s+)?sleep\s+(\d+(?:\.\d+)?)/.exec(text)?.[1]) ?? 0
  return Math.min(...waits) + fallback
}

const seconds = (text: string | undefined) => (text === undefined ? undefined : Number(text) * 1000)
