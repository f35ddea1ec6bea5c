import { type Ack, type Hook, type Stop, isOwnLimit } from '../../rules/drain/drain.ts'
import { runOf, saysThatItEnds } from '../../rules/drain/eligible.ts'
import type { PodFact, PodUid } from '../../rules/drain/facts.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import type { Clock } from '../../base/clock.ts'
import { inTime, orAborted } from '../../kubernetes/transport/connection.ts'

/** A hook that waits for its answer. */
export interface HeldHook {
  readonly hook: Hook
  /** The pod according to the caller's identity. */
  readonly pod: PodFact
  /** The pod itself has called: the container is about to stop. */
  readonly stop: Stop | undefined
}

interface HooksOptions {
  readonly cluster: Pick<Cluster, 'pods' | 'verifyWatch'>
  /** See `createFreshWatch`. */
  readonly freshWatch: (signal: AbortSignal) => Promise<void>
  /** The answer to a hook whose drain is proven already. `undefined`: the hook must be held. */
  readonly proven: (hook: Hook) => Ack | undefined
  /** Requests a round, because something has changed. */
  readonly wake: () => void
}

export type Hooks = ReturnType<typeof createHooks>

/** The held hooks. Only rounds answer them; otherwise a hook ends by its signal. */
export function createHooks({ cluster, freshWatch, proven, wake }: HooksOptions) {
  const entries = new Map<string, HeldHook & { readonly resolve: (ack: Ack) => void }>()

  return {
    async hold({ hook, pod, isOwn = false }: HoldRequest, signal: AbortSignal): Promise<Ack> {
      const ack = proven(hook)
      if (ack) return ack
      signal.throwIfAborted()
      const over = new AbortController()
      const { promise, resolve } = Promise.withResolvers<Ack>()
      const { container, receivedAt: at } = hook
      const latest = cluster.pods.get(pod.uid) ?? pod
      const stop = isOwn ? { container, run: runOf(latest, container), at } : undefined
      entries.set(hook.id, { hook, pod, stop, resolve })
      // A pod that ends was deleted before its hook called. So a watch that does not show that may be behind.
      const doubt = () => void (entries.has(hook.id) && cluster.verifyWatch('pods'))
      if (!saysThatItEnds(latest)) void freshWatch(over.signal).catch(doubt)
      wake()
      try {
        return await orAborted(promise, signal)
      } finally {
        over.abort()
        entries.delete(hook.id)
      }
    },
    held: (): readonly HeldHook[] => [...entries.values()],
    uids: (): ReadonlySet<PodUid> => new Set([...entries.values()].map(({ pod }) => pod.uid)),
    answer(hook: Hook, ack: Ack) {
      entries.get(hook.id)?.resolve(ack)
      entries.delete(hook.id)
    }
  }
}

/** Pause between two requests, in ms. */
const PAUSE_MS = 100

/**
 * Makes a function that waits until the watch of pods has shown all that the API server had at the time of the call. All callers share one
 * small request at a time. So an unknown address costs the API server next to nothing, and the answer is never old.
 *
 * @returns a function that throws the signal's reason, or an Error if the watch is behind
 */
export function createFreshWatch(
  cluster: Pick<Cluster, 'assurePods' | 'podsAssuredAt' | 'onChange'>,
  clock: Clock
): (signal: AbortSignal) => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  /** The next request: not sent yet, so more callers can share it. */
  let next: Promise<void> | undefined

  const look = async (): Promise<void> => {
    const from = clock.now()
    const { promise, resolve } = Promise.withResolvers<void>()
    const check = () => {
      if (cluster.podsAssuredAt() >= from) resolve()
    }
    const off = cluster.onChange(check)
    cluster.assurePods()
    check()
    const bound = { clock, what: 'the watch of pods is behind: ' }
    await inTime(bound, late => orAborted(promise, late)).finally(off)
  }
  const begin = async (): Promise<void> => {
    await running
    next = undefined
    const looking = look()
    running = looking.catch(() => {}).then(() => clock.sleep(PAUSE_MS))
    await looking
  }
  return signal => orAborted((next ??= begin()), signal)
}

/** Headers of every answer. */
export const ALWAYS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/**
 * A hook's answer. A Response made from a string with all of its headers goes straight to the socket. With `Response.json`, or with
 * headers added later, `@hono/node-server` reads it as a web stream. That costs half a millisecond more in an agent that has just
 * started, and hundreds of hooks may come at once.
 */
export const reply = (
  body: object,
  status: number,
  headers: Readonly<Record<string, string>> = {}
): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...ALWAYS, ...headers }
  })

/**
 * Returns a function that tells whether an answer is the first of its kind: for the end of its pod, or for the run of a container that
 * restarts. Anybody can repeat a call, so only first answers are logged, counted and shown. The latest 10,000 are remembered.
 */
export function createFirsts(): (hook: Hook, ack: Ack, pod: PodFact) => boolean {
  const given = new Set<string>()
  return (hook, ack, pod) => {
    const run = saysThatItEnds(pod) ? '' : runOf(pod, hook.container)
    const key = `${isOwnLimit(hook, ack) ? 'limit' : ack.status} ${hook.uid} ${run}`
    const isFirst = !given.has(key)
    given.add(key)
    if (given.size > 10_000) given.delete(given.values().next().value!)
    return isFirst
  }
}

/** Why a hook gets no ack, each with its HTTP status. The helper retries at another agent, but not after a 4xx other than 408, 425, 429. */
export const REFUSALS = {
  'bad-request': 400,
  'not-named': 400,
  forbidden: 403,
  'unknown-pod': 404,
  'too-many-hooks-of-pod': 429,
  'too-many-hooks': 503,
  'cannot-vouch': 503,
  'cannot-ask-kubernetes': 503,
  'shutting-down': 503,
  'no-answer': 503
} as const

type RefusalCode = keyof typeof REFUSALS

export interface Refusal {
  readonly ok: false
  readonly error: RefusalCode
  readonly why: string
}

/** A refusal of a hook. `why` says what to change. */
export const refuse = (error: RefusalCode, why: string): Refusal => ({ ok: false, error, why })

/** A retry after a second may help: at another agent, or at this one once it has synced. */
const RETRIED: ReadonlySet<RefusalCode> = new Set([
  'too-many-hooks-of-pod',
  'too-many-hooks',
  'cannot-vouch',
  'cannot-ask-kubernetes'
])

/** The HTTP response to a refused hook: `{ "error", "why" }` with the status from `REFUSALS`. */
export const refusalResponse = ({ error, why }: Refusal): Response =>
  reply({ error, why }, REFUSALS[error], RETRIED.has(error) ? { 'retry-after': '1' } : {})

/** One hook to be held, and its pod according to the caller's identity. */
export interface HoldRequest {
  readonly hook: Hook
  readonly pod: PodFact
  /** The pod itself has sent it: a POST from an address that only this pod has. Absent: the caller has only named the pod. */
  readonly isOwn?: boolean
}

/** Whether the agent can vouch for an answer now. */
export type Vouch = { readonly ok: true } | { readonly ok: false; readonly why: string }

/** A part that is not ready yet, and the reason. */
export interface MissingPart {
  readonly part: string
  readonly why: string
}

/** The interface between `hook/` and the rest of the agent. `round/` implements it; tests implement it in a few lines. */
export interface Holds {
  /**
   * Resolves with the answer before the pod's deadline, whatever fails. Rejects with the signal's reason as soon as the caller
   * disconnects or the agent drops the hook. The drain itself continues.
   */
  hold(request: HoldRequest, signal: AbortSignal): Promise<Ack>
  /** Whether hooks may be held now (`vouch`). If not, the hook is refused, so its fallback runs. */
  canVouch(): Vouch
  /** How far the API server's clock is behind the agent's, in ms: add this to `deletionAt`. */
  serverBehindMs(): number
  /** Pods of the watch that have this address: several if they share their host's. The address is normalised. */
  findByIp(ip: string): readonly PodFact[]
  /** Like `findByIp`, but waits until the watch has shown all that the API server has now. Rejects if that takes too long. */
  freshByIp(ip: string, signal: AbortSignal): Promise<readonly PodFact[]>
  /** The pod by name, like `freshByIp`. `undefined` if the pod does not exist, or if its namespace is not watched. */
  find(namespace: string, name: string, signal: AbortSignal): Promise<PodFact | undefined>
}
