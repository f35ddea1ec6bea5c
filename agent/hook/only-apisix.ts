import type { Clock } from '../base/clock.ts'
import { fieldsOf } from '../base/read.ts'
import { annotationsOf } from '../kubernetes/facts/pod-fact.ts'
import { inTime } from '../round/hold/fresh-watch.ts'
import { readOptions } from '../rules/drain/annotations.ts'
import type { Millis } from '../rules/drain/facts.ts'

/** How long an answer is used, in ms. */
const FRESH_MS = 5000

/** Asks whether a namespace says of all its pods that their requests come through APISIX only. Without an answer: no. */
export function createOnlyApisix(
  call: (
    method: string,
    path: string,
    body: undefined,
    signal: AbortSignal
  ) => Promise<{ readonly json: unknown }>,
  clock: Clock
): (namespace: string) => Promise<boolean> {
  const known = new Map<string, { readonly until: Millis; readonly answer: Promise<boolean> }>()
  const ask = async (namespace: string): Promise<boolean> => {
    const path = `/api/v1/namespaces/${namespace}`
    const { json } = await inTime(clock, signal => call('GET', path, undefined, signal))
    return readOptions(annotationsOf(fieldsOf(fieldsOf(json)['metadata'])['annotations'])).onlyApisix
  }
  return namespace => {
    const now = clock.now()
    const last = known.get(namespace)
    if (last && now < last.until) return last.answer
    const answer = ask(namespace).catch(() => false)
    known.set(namespace, { until: now + FRESH_MS, answer })
    return answer
  }
}
