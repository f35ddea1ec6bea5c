import { parseDuration } from '../drain/duration.ts'
import { fieldsOf, listOf, textOf, type Fields } from '../watch/read.ts'

/** What a pod's spec shows of its hook to us. */
export interface HookSpec {
  readonly container: string
  /** The longest the hook can take by its own words, in ms: curl's `-m`, `timeout`, or `?timeout=`, and the fallback's sleep. */
  readonly longestMs: number | undefined
}

/** The containers of a raw pod whose preStop calls `/v1/prestop`. Total: what cannot be read is no hook of ours. */
export function hooksOf(pod: unknown): readonly HookSpec[] {
  const spec = fieldsOf(fieldsOf(pod)['spec'])
  return [...listOf(spec['containers']), ...listOf(spec['initContainers'])].flatMap(raw => {
    const container = fieldsOf(raw)
    const text = textOfHook(fieldsOf(fieldsOf(container['lifecycle'])['preStop']))
    if (!text.includes('/v1/prestop')) return []
    return [{ container: textOf(container['name']) ?? '', longestMs: longest(text) }]
  })
}

function textOfHook(preStop: Fields): string {
  const command = listOf(fieldsOf(preStop['exec'])['command']).filter(word => typeof word === 'string')
  return [...command, textOf(fieldsOf(preStop['httpGet'])['path']) ?? ''].join(' ')
}

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
