import { setTimeout as wait } from 'node:timers/promises'
import { now } from '../now.ts'
import { createRandom } from '../random.ts'
import { adcObjects, weightOf, type Backend, type OwnedRule } from './adc-objects.ts'
import type { AdcTarget } from './adc-target.ts'
import type { Owner, OwnerWrite } from './owner.ts'
import { readyNodes, type SliceSource, type UpstreamNode } from './slices.ts'

export interface AdcOptions {
  readonly slices: SliceSource
  readonly services: readonly OwnedRule[]
  readonly target: AdcTarget
  /** From the start of a sync to its first write, a random number of ms: the dump and the comparison of all objects. */
  readonly syncMs: { readonly minMs: number; readonly maxMs: number }
  /** The period of syncs without an event: one minute in the chart, one hour in the controller itself. */
  readonly periodMs: number
  readonly seed: number
}

/**
 * Writes like the ingress controller 2.x through ADC. Every change of an EndpointSlice, and every period, asks for one full
 * sync. Requests during a sync merge into one (a channel of capacity 1, provider.go:301). A sync writes the state that it
 * read at its start, however long it takes. So it restores nodes that another writer, or Kubernetes, has removed meanwhile.
 */
export function startAdc({ slices, services, target, syncMs, periodMs, seed }: AdcOptions): Owner {
  const random = createRandom(seed)
  const stopped = new AbortController()
  const writes: OwnerWrite[] = []
  let called: number | undefined = now()
  let wake = () => {}

  const call = (): void => {
    called ??= now()
    wake()
  }
  const nodesOf = (backend: Backend): UpstreamNode[] =>
    readyNodes(slices.list(), `${backend.namespace}/${backend.name}`, weightOf(backend))

  const sync = async (eventAt: number): Promise<void> => {
    const rules = services.map(rule =>
      [rule, ...(rule.others ?? [])].map(backend => ({ backend, nodes: nodesOf(backend) }))
    )
    await wait(syncMs.minMs + random() * (syncMs.maxMs - syncMs.minMs), undefined, { signal: stopped.signal })
    const failure = await target(adcObjects(rules)).then(
      () => undefined,
      (error: unknown) => error
    )
    const acceptedAt = failure === undefined ? now() : undefined
    for (const { backend, nodes } of rules.flat())
      writes.push({ service: `${backend.namespace}/${backend.name}`, eventAt, acceptedAt, nodes })
    if (failure !== undefined) setTimeout(call, RETRY_MS).unref()
  }
  const work = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const eventAt = called
      if (eventAt === undefined) {
        await new Promise<void>(resolve => (wake = resolve))
        continue
      }
      called = undefined
      await sync(eventAt)
    }
  }
  const unsubscribe = slices.onChange(call)
  const timer = setInterval(call, periodMs)
  const working = work().catch(() => {}) // rejects only when stopped

  return {
    writes,
    async close() {
      unsubscribe()
      clearInterval(timer)
      stopped.abort()
      wake()
      await working
    }
  }
}

/** The pause before a retry. The controller starts with this pause (provider.go:48) and then doubles it; the stand-in does not. */
const RETRY_MS = 1000
