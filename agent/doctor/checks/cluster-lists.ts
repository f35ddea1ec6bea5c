import type { AdminApi } from '../../gateway/apisix/admin-api.ts'
import type { Clock } from '../../base/clock.ts'
import type { PodFact } from '../../rules/drain/facts.ts'
import { toPodFact } from '../../kubernetes/facts/pod-fact.ts'
import { createPodStore, type PodStore } from '../../kubernetes/facts/pod-store.ts'
import { toServiceFact, createServiceStore } from '../../kubernetes/facts/service-store.ts'
import { createHolderIndex } from '../../gateway/inventory/holder-index.ts'
import { RESOURCES } from '../../gateway/inventory/inventory.ts'
import { listAll } from '../../gateway/inventory/lists.ts'
import type { Sink } from '../../kubernetes/reflect/follow.ts'
import { endBefore, hooksOf, isLikeAPISIX, type HookSpec } from './check-hooks.ts'

/** Objects of the API server, page by page. */
export type Pages = (signal: AbortSignal) => AsyncIterable<readonly unknown[]>

/** The lists that several checks need. Each list is read once, at the first call. If the read fails, all callers get this failure. */
export type ClusterLists = ReturnType<typeof createClusterLists>

export interface SurveyedPods {
  readonly store: PodStore
  /** Pods that have the agent's hook, and their containers that end before its answer. */
  readonly hooked: readonly {
    readonly pod: PodFact
    readonly hooks: readonly HookSpec[]
    readonly early: readonly string[]
  }[]
  /** Pods whose label or image is that of APISIX. */
  readonly apisix: readonly PodFact[]
}

interface SurveyOptions {
  /** Whether the namespace says so of all its pods. */
  readonly isOnlyApisix: (namespace: string) => Promise<boolean>
  readonly clock: Clock
  readonly lists: Readonly<Record<'pods' | 'services', Pages>>
  /** The source of the holders, in the mode of this APISIX. */
  readonly holders: (signal: AbortSignal) => Promise<Pick<AdminApi, 'list' | 'pageSize'>>
}

export function createClusterLists({ clock, lists, holders, isOnlyApisix }: SurveyOptions) {
  return {
    isOnlyApisix,
    pods: once(async (signal): Promise<SurveyedPods> => {
      const { store, sink } = createPodStore(clock)
      const hooked: SurveyedPods['hooked'][number][] = []
      const apisix: PodFact[] = []
      const read = (object: unknown) => {
        const pod = toPodFact(object)
        const hooks = pod ? hooksOf(object) : []
        if (pod && hooks.length > 0) hooked.push({ pod, hooks, early: endBefore(object, hooks) })
        if (pod && isLikeAPISIX(object)) apisix.push(pod)
        return pod
      }
      await fill(lists.pods(signal), read, sink)
      return { store, hooked, apisix }
    }),
    services: once(async signal => {
      const { store, sink } = createServiceStore()
      await fill(lists.services(signal), toServiceFact, sink)
      return store
    }),
    /** From the Admin API. */
    inventory: once(async signal => {
      const index = createHolderIndex()
      const source = await holders(signal)
      for (const resource of RESOURCES)
        index.replace(resource, (await listAll(source, resource, signal)) ?? [], 0)
      return index
    })
  }
}

function once<T>(read: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let result: Promise<T> | undefined
  return signal => (result ??= read(signal))
}

async function fill<F>(
  pages: AsyncIterable<readonly unknown[]>,
  read: (object: unknown) => F | undefined,
  sink: Sink<F>
): Promise<void> {
  for await (const page of pages) {
    for (const object of page) {
      const fact = read(object)
      if (fact !== undefined) sink.set(fact)
    }
  }
}

/** One result of a check. `change` is empty if nothing has to be changed. */
export interface Finding {
  /** Stable, for scripts: `kubernetes`, `rbac`, `admin-api`, … */
  readonly name: string
  readonly level: 'ok' | 'warn' | 'fail'
  readonly what: string
  readonly change: string
}

/** A check returns at least one finding. If it rejects, it could not be made: a failure with the error's message. */
export type Check = (signal: AbortSignal) => Promise<readonly Finding[]>

/** A finding without a problem. */
export const ok = (name: string, what: string): Finding => ({ name, level: 'ok', what, change: '' })
/** A part is missing, or works less well than it could. `change` is the remedy. */
export const warn = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'warn',
  what,
  change
})
/** A part that is configured does not work. The exit code becomes 1. */
export const fail = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'fail',
  what,
  change
})

/** An error's message, for a finding. */
export const wordsOf = (err: unknown): string => (err instanceof Error ? err.message : String(err))
