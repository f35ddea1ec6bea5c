import type { AdminApi } from '../../gateway/apisix/admin-api.ts'
import type { Clock } from '../../base/clock.ts'
import type { PodFact, PodUid } from '../../rules/drain/facts.ts'
import { toPodFact } from '../../kubernetes/facts/pod-fact.ts'
import { createPodStore, type PodStore } from '../../kubernetes/facts/pod-store.ts'
import { toServiceFact, createServiceStore } from '../../kubernetes/facts/service-store.ts'
import { createHolderIndex } from '../../gateway/inventory/holder-index.ts'
import { RESOURCES } from '../../gateway/inventory/inventory.ts'
import { listAll } from '../../gateway/inventory/lists.ts'
import { endBefore, hooksOf, isLikeAPISIX, type HookSpec } from './check-hooks.ts'

/** Calls `onItem` with each object of one kind; again, if the list had to begin again. */
export type ListObjects = (onItem: (object: unknown) => void, signal: AbortSignal) => Promise<void>

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
  readonly lists: Readonly<Record<'pods' | 'services', ListObjects>>
  /** The source of the holders, in the mode of this APISIX. */
  readonly holders: (signal: AbortSignal) => Promise<Pick<AdminApi, 'list' | 'pageSize'>>
}

export function createClusterLists({ clock, lists, holders, isOnlyApisix }: SurveyOptions) {
  return {
    isOnlyApisix,
    pods: once(async (signal): Promise<SurveyedPods> => {
      const { store, sink } = createPodStore(clock)
      const hooked = new Map<PodUid, SurveyedPods['hooked'][number]>()
      const apisix = new Map<PodUid, PodFact>()
      await lists.pods(object => {
        const pod = toPodFact(object)
        if (!pod) return
        sink.set(pod)
        const hooks = hooksOf(object)
        if (hooks.length > 0) hooked.set(pod.uid, { pod, hooks, early: endBefore(object, hooks) })
        if (isLikeAPISIX(object)) apisix.set(pod.uid, pod)
      }, signal)
      return { store, hooked: [...hooked.values()], apisix: [...apisix.values()] }
    }),
    services: once(async signal => {
      const { store, sink } = createServiceStore()
      await lists.services(object => {
        const service = toServiceFact(object)
        if (service) sink.set(service)
      }, signal)
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

/** One finding names at most this many. */
const NAMED = 5

export const namesOf = (names: readonly string[]): string =>
  names.slice(0, NAMED).join(', ') + (names.length > NAMED ? ` and ${names.length - NAMED} more` : '')

/** An error's message, for a finding. */
export const wordsOf = (err: unknown): string => (err instanceof Error ? err.message : String(err))
