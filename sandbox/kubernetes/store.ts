import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { withDefaults, withSpecDefaults } from './defaults.ts'
import { decideDeletion, isFinished, wholeSeconds, type DeleteOptions } from './deletion.ts'
import { MODIFIED_MEANWHILE, alreadyExists, conflict, invalid, notFound, tooOld } from './errors.ts'
import { createHistory, rollBack, type Change, type History } from './history.ts'
import { freeze, keepSystemFields, keyOf, nameSuffix } from './objects.ts'
import type { Draft, KubeObject, Meta } from './objects.ts'
import { strategicMerge } from './patch-strategic.ts'
import { apiVersionOf, infoOf, type ResourceName, type ResourceTypes } from './resources.ts'
import { matcher } from './selectors.ts'

interface ListOptions {
  readonly namespace?: string | undefined
  /** Label selector in API syntax. */
  readonly labels?: string | undefined
  /** Field selector in API syntax. */
  readonly fields?: string | undefined
}

interface WriteOptions {
  /** Checks everything, and stores nothing. */
  readonly dryRun?: boolean
}

/**
 * All objects, one global resourceVersion, optimistic concurrency. Synchronous: when a call returns, its write is
 * committed, and every listener has been called. Returned objects are frozen; refusals are thrown as `ApiError`.
 */
export interface Store {
  create<R extends ResourceName>(
    resource: R,
    draft: Draft<ResourceTypes[R]>,
    options?: WriteOptions
  ): ResourceTypes[R]
  get<R extends ResourceName>(
    resource: R,
    namespace: string | undefined,
    name: string
  ): ResourceTypes[R] | undefined
  list<R extends ResourceName>(resource: R, options?: ListOptions): ResourceTypes[R][]
  /** Replaces all but the status. 409 if the given uid or resourceVersion differs from the stored one. */
  update<R extends ResourceName>(
    resource: R,
    object: Draft<ResourceTypes[R]>,
    options?: WriteOptions
  ): ResourceTypes[R]
  /** Replaces the status only. */
  updateStatus<R extends ResourceName>(
    resource: R,
    object: Draft<ResourceTypes[R]>,
    options?: WriteOptions
  ): ResourceTypes[R]
  /** Reads, changes and writes an object, but not its status. */
  modify<R extends ResourceName>(
    resource: R,
    namespace: string | undefined,
    name: string,
    change: (object: ResourceTypes[R]) => Draft<ResourceTypes[R]>
  ): ResourceTypes[R]
  /** Strategic merge into the status: conditions by type, podIPs by ip, other lists replaced, null removes. */
  patchStatus<R extends ResourceName>(
    resource: R,
    namespace: string | undefined,
    name: string,
    patch: Readonly<Record<string, unknown>>
  ): ResourceTypes[R]
  /** Deletes an object. A pod ends with its grace; `gracePeriodSeconds: 0` is the kubelet's last delete. Returns the last state. */
  delete<R extends ResourceName>(
    resource: R,
    namespace: string | undefined,
    name: string,
    options?: DeleteOptions & WriteOptions
  ): ResourceTypes[R]
  /** Calls the listener for every later write, in order. If a listener writes, that write comes after the present one. */
  onChange<R extends ResourceName>(
    resource: R,
    listener: (change: Change<ResourceTypes[R]>) => void
  ): () => void
  onAnyChange(listener: (change: Change) => void): () => void
  /** resourceVersion of the last write. */
  version(): number
  /** Objects in the order of a list, as they were at `version` (default: now). Throws a 410 for a version before the history. */
  snapshot<R extends ResourceName>(resource: R, version?: number): readonly ResourceTypes[R][]
  readonly history: Pick<History, 'since' | 'floor'>
  /** Every older resourceVersion and page token gets 410 from now on. The version jumps forward (a restart) or back (a restore). */
  forgetHistory(versionJump?: number): void
  /** Milliseconds since the epoch, by this API server's clock. */
  now(): number
}

export interface StoreOptions {
  readonly now?: () => number
  /** Watches can start within this many changes; up to twice as many are kept. */
  readonly historyLimit?: number
}

/** The part of an object whose changes `generation` counts. */
const desired = (object: object): object => ({ ...object, metadata: undefined, status: undefined })

export function createStore(options: StoreOptions = {}): Store {
  const now = options.now ?? Date.now
  let version = 1000
  const history = createHistory(options.historyLimit ?? 20_000, version)
  const tables = new Map<ResourceName, Map<string, KubeObject>>()
  const listeners = new Set<(change: Change) => void>()
  const untold: Change[] = []
  let telling = false

  const table = (resource: ResourceName): Map<string, KubeObject> => {
    const known = tables.get(resource)
    if (known) return known
    const fresh = new Map<string, KubeObject>()
    tables.set(resource, fresh)
    return fresh
  }

  const tell = () => {
    if (telling) return
    telling = true
    try {
      for (let change = untold.shift(); change; change = untold.shift())
        for (const listener of listeners) {
          try {
            listener(change)
          } catch (err) {
            // An error of a listener must not undo the committed write. It is thrown later, so that it ends the process.
            queueMicrotask(() => {
              throw err
            })
          }
        }
    } finally {
      telling = false
    }
  }

  const commit = (
    type: Change['type'],
    resource: ResourceName,
    object: KubeObject,
    previous: KubeObject | undefined
  ): KubeObject => {
    version += 1
    const stored = freeze({ ...object, metadata: { ...object.metadata, resourceVersion: `${version}` } })
    if (type === 'DELETED') table(resource).delete(keyOf(stored))
    else table(resource).set(keyOf(stored), stored)
    const change: Change = { version, resource, type, object: stored, previous }
    history.push(change)
    untold.push(change)
    tell()
    return stored
  }

  const must = (resource: ResourceName, namespace: string | undefined, name: string): KubeObject => {
    const object = table(resource).get(
      keyOf({ metadata: { ...(namespace === undefined ? {} : { namespace }), name } })
    )
    if (!object) throw notFound(resource, name)
    return object
  }

  const check = (resource: ResourceName, current: KubeObject, uid?: string, resourceVersion?: string) => {
    const { name } = current.metadata
    if (uid && uid !== current.metadata.uid)
      throw conflict(
        resource,
        name,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid}`
      )
    if (resourceVersion && resourceVersion !== current.metadata.resourceVersion)
      throw conflict(resource, name, MODIFIED_MEANWHILE)
  }

  const replace = (
    resource: ResourceName,
    given: { metadata: Partial<Meta>; status?: unknown },
    part: 'object' | 'status',
    { dryRun = false }: WriteOptions
  ): KubeObject => {
    const { name = '', namespace } = given.metadata
    const current = must(resource, namespace, name)
    check(resource, current, given.metadata.uid, given.metadata.resourceVersion)
    const clean = JSON.parse(JSON.stringify(given)) as KubeObject & { status?: unknown }
    const { status } = current as { status?: unknown }
    const next =
      part === 'status'
        ? { ...current, status: clean.status }
        : {
            ...withSpecDefaults(resource, clean, current),
            apiVersion: current.apiVersion,
            kind: current.kind,
            metadata: keepSystemFields(clean.metadata, current.metadata),
            ...(infoOf(resource).status ? { status } : {})
          }
    const changed = next as KubeObject
    if (isDeepStrictEqual(current, changed)) return current
    const respecified = part === 'object' && !isDeepStrictEqual(desired(current), desired(changed))
    const stepped = respecified
      ? { ...changed, metadata: { ...changed.metadata, generation: (current.metadata.generation ?? 0) + 1 } }
      : changed
    if (dryRun) return stepped
    if (isFinished(stepped)) return commit('DELETED', resource, stepped, current)
    return commit('MODIFIED', resource, stepped, current)
  }

  const store: Store = {
    create(resource, draft, { dryRun = false } = {}) {
      const info = infoOf(resource)
      const { name, generateName, namespace } = draft.metadata
      const named = name ?? (generateName === undefined ? undefined : `${generateName}${nameSuffix()}`)
      if (!named)
        throw invalid(
          `${info.kind} is invalid: metadata.name: Required value: name or generateName is required`
        )
      const { deletionTimestamp: _, deletionGracePeriodSeconds: __, ...metadata } = draft.metadata
      const clean = JSON.parse(
        JSON.stringify({
          apiVersion: apiVersionOf(info),
          kind: info.kind,
          ...draft,
          metadata: {
            ...metadata,
            name: named,
            ...(info.namespaced ? { namespace: namespace ?? 'default' } : {}),
            uid: randomUUID(),
            creationTimestamp: wholeSeconds(now()),
            generation: 1
          }
        })
      ) as KubeObject
      if (table(resource).has(keyOf(clean))) throw alreadyExists(resource, named)
      const full = withDefaults(resource, clean)
      return (dryRun ? full : commit('ADDED', resource, full, undefined)) as never
    },
    get: (resource, namespace, name) =>
      table(resource).get(
        keyOf({ metadata: { ...(namespace === undefined ? {} : { namespace }), name } })
      ) as never,
    list(resource, where = {}) {
      const match = matcher(resource, where)
      return store.snapshot(resource).filter(match)
    },
    update: (resource, object, write = {}) => replace(resource, object, 'object', write) as never,
    updateStatus: (resource, object, write = {}) => replace(resource, object, 'status', write) as never,
    modify(resource, namespace, name, change) {
      const current = must(resource, namespace, name)
      return store.update(resource, change(current as never))
    },
    patchStatus(resource, namespace, name, patch) {
      const current = must(resource, namespace, name) as KubeObject & { status?: unknown }
      return replace(
        resource,
        { metadata: current.metadata, status: strategicMerge(current.status ?? {}, patch) },
        'status',
        {}
      ) as never
    },
    delete(resource, namespace, name, { dryRun = false, ...how } = {}) {
      const current = must(resource, namespace, name)
      check(resource, current, how.preconditions?.uid, how.preconditions?.resourceVersion)
      const { marked, remove } = decideDeletion(resource, current, how, now())
      if (dryRun) return (marked ?? current) as never
      const last = marked ? commit('MODIFIED', resource, marked, current) : current
      return (remove && isStored(resource, last) ? commit('DELETED', resource, last, last) : last) as never
    },
    onChange: (resource, listener) =>
      store.onAnyChange(change => {
        if (change.resource === resource) listener(change as never)
      }),
    onAnyChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    version: () => version,
    snapshot(resource, at = version) {
      const current = table(resource)
      const undo = at === version ? [] : history.since(at)
      if (!undo) throw tooOld(at, history.floor())
      const then = rollBack(
        current,
        undo.filter(change => change.resource === resource),
        keyOf
      )
      return [...then].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object) as never
    },
    history,
    forgetHistory(jump = 8) {
      version += jump
      history.restart(version)
    },
    now
  }

  /** False if a listener deleted the object while it was being marked. */
  const isStored = (resource: ResourceName, object: KubeObject): boolean =>
    table(resource).get(keyOf(object))?.metadata.uid === object.metadata.uid

  return store
}
