import type { Store as Apisix } from '../../sandbox/apisix/store.ts'
import type { Store as Kubernetes } from '../../sandbox/kubernetes/store.ts'
import type { Backend } from './backend.ts'
import { nodesIn } from './held-nodes.ts'
import type { HookReply } from './hook.ts'
import type { TestPod } from './pods.ts'
import { measureStalls, stalledMs } from './stall.ts'

/** Checks the invariants (docs/lab/faults.md) from outside, at the stand-ins and at the pods. */
export interface Judge {
  /** The pod was deleted just now. */
  ended(pod: TestPod): void
  answered(pod: TestPod, reply: HookReply): void
  /** A container of the pod is back, so requests may reach it until its next answer. */
  restarted(pod: TestPod): void
  arrivals(pod: TestPod, backend: Backend): void
  /** Nodes that the test listed by hand, that the agent overwrote within `WINDOW_MS`, and that are still missing. */
  overwritten(): readonly string[]
  /** Nodes that the agent's writes listed although the test never did (docs/decisions/0024); with `sync` that is its task. */
  unlisted(): readonly string[]
  violations(): readonly string[]
}

/** An answer that needs no waiting, in ms. */
const AT_ONCE_MS = 250
/**
 * From the agent's read of an array to its write, in ms. The write overwrites nodes that were added in between, and the
 * Admin API cannot detect that (docs/decisions/0024). A round trip takes 2 ms; here all stand-ins share a process.
 */
const WINDOW_MS = 100

export function createJudge(options: {
  readonly kubernetes: Kubernetes
  readonly apisix: Apisix
  readonly byHand: () => boolean
  /** How much of the time `from` to `to` the agent may lose between read and write, in ms. Default: the stalls of this process. */
  readonly excusedMs?: (from: number, to: number) => number
  /** `drain.reserve`, in ms; default 0. */
  readonly reserveMs?: number
}): Judge {
  const { kubernetes, apisix, byHand, excusedMs = stalledMs, reserveMs = 0 } = options
  measureStalls()
  const violations: string[] = []
  /** When each pod was deleted, by the monotonic clock: a change of the API server's clock does not affect that. */
  const endedAt = new Map<string, number>()
  /** When each pod was last deleted. That delete may have moved the deadline into the past. */
  const shortenedAt = new Map<string, number>()
  /** When the test listed a node by hand. */
  const listedAt = new Map<string, number>()
  const overwritten = new Map<string, string>()
  const unlisted: string[] = []
  const before = new Map<string, Record<string, readonly string[]>>()
  const promised: { readonly uid: string; readonly at: number; until: number }[] = []
  const promiseOf = (uid: string) => promised.find(one => one.uid === uid && one.until === Infinity)
  const backends: { readonly pod: TestPod; readonly backend: Backend }[] = []

  /** A pod that stays: it has this address, and the test has not ended it. */
  const staysAt = (node: string) =>
    kubernetes
      .list('pods')
      .find(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined &&
          !endedAt.has(metadata.uid) &&
          status.phase === 'Running' &&
          status.podIPs?.some(
            ({ ip }) => node === ip || node.startsWith(`${ip}:`) || node.startsWith(`[${ip}]`)
          )
      )

  apisix.watch(event => {
    const key = event.kind === 'put' ? event.item.key : event.key
    const old = before.get(key) ?? {}
    const now = event.kind === 'put' ? nodesIn(event.item) : {}
    if (event.kind === 'put') before.set(key, now)
    else before.delete(key)
    const at = performance.now()
    for (const [holder, nodes] of Object.entries(now)) {
      for (const node of nodes) {
        overwritten.delete(`${holder} ${node}`)
        if (old[holder]?.includes(node)) continue
        if (byHand()) listedAt.set(`${holder} ${node}`, at)
        else if (!listedAt.has(`${holder} ${node}`))
          unlisted.push(`${node} was listed in ${holder}, and its owner never had`)
      }
    }
    if (byHand()) return
    const inWindow = (place: string) => {
      const from = listedAt.get(place) ?? -Infinity
      return at - from - excusedMs(from, at) <= WINDOW_MS
    }
    for (const [holder, nodes] of Object.entries(old)) {
      const left = now[holder] ?? []
      if (nodes.length > 0 && left.length === 0)
        violations.push(`${holder} was emptied of ${nodes.join(' ')}`)
      for (const node of nodes.filter(one => !left.includes(one))) {
        const pod = staysAt(node)
        if (pod && inWindow(`${holder} ${node}`)) overwritten.set(`${holder} ${node}`, node)
        else if (pod) violations.push(`${node} was taken out of ${holder}, but ${pod.metadata.name} stays`)
      }
    }
  })

  return {
    ended({ uid }) {
      const at = performance.now()
      if (!endedAt.has(uid)) endedAt.set(uid, at)
      shortenedAt.set(uid, at)
    },
    answered(pod, { at, body, status, calledAt }) {
      const object = kubernetes.get('pods', pod.namespace, pod.name)
      const metadata = object?.metadata.uid === pod.uid ? object.metadata : undefined
      const ended = endedAt.get(pod.uid)
      const endsAt =
        ended === undefined || metadata?.deletionGracePeriodSeconds === undefined
          ? Infinity
          : ended + metadata.deletionGracePeriodSeconds * 1000
      // If the call or the last delete comes after the deadline, the answer is due at once.
      const due = Math.max(endsAt, Math.max(calledAt, shortenedAt.get(pod.uid) ?? 0) + AT_ONCE_MS)
      // The agent keeps a reserve for delays, and a busy machine uses that up first.
      if (at - due > stalledMs(due - Math.max(AT_ONCE_MS, reserveMs), at))
        violations.push(
          `the hook of ${pod.name} was answered ${Math.round(at - endsAt)} ms after its deadline, ` +
            `${Math.round(at - calledAt)} ms after its call: ${status} ${body.result ?? body.error}`
        )
      if (body.evidence === 'barrier' && !promiseOf(pod.uid))
        promised.push({ uid: pod.uid, at, until: Infinity })
    },
    restarted({ uid }) {
      const promise = promiseOf(uid)
      if (promise) promise.until = performance.now()
    },
    arrivals: (pod, backend) => void backends.push({ pod, backend }),
    overwritten: () => [...overwritten.values()],
    unlisted: () => unlisted,
    violations() {
      const late = backends.flatMap(({ pod, backend }) => {
        const mine = promised.filter(({ uid }) => uid === pod.uid)
        const after = backend.arrivals.filter(at => mine.some(one => at > one.at && at < one.until))
        return after.length > 0
          ? [`${after.length} requests reached ${pod.name} after an ack of grade barrier`]
          : []
      })
      return [...violations, ...late]
    }
  }
}
