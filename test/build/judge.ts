import type { Store as Apisix } from '../../sandbox/apisix/store.ts'
import type { Store as Kubernetes } from '../../sandbox/kubernetes/store.ts'
import type { Backend } from './backend.ts'
import { nodesIn } from './held-nodes.ts'
import type { HookReply } from './hook.ts'
import type { TestPod } from './pods.ts'

/** Watches from outside, at the stand-ins and at the pods, whether what must always hold does (DESIGN, 1 to 3). */
export interface Judge {
  answered(pod: TestPod, reply: HookReply): void
  arrivals(pod: TestPod, backend: Backend): void
  violations(): readonly string[]
}

export function createJudge(options: {
  readonly kubernetes: Kubernetes
  readonly apisix: Apisix
  readonly byHand: () => boolean
}): Judge {
  const { kubernetes, apisix, byHand } = options
  const violations: string[] = []
  /** Removals of a pod that stays. What a write of ours overwrote may be put back by the next one (DESIGN, 7). */
  const wrong = new Map<string, string>()
  const before = new Map<string, Record<string, readonly string[]>>()
  const promised = new Map<string, { readonly pod: TestPod; readonly at: number }>()
  const backends: { readonly pod: TestPod; readonly backend: Backend }[] = []

  /** A pod that stays: it has the address, and nobody has ended it. */
  const staysAt = (node: string) =>
    kubernetes
      .list('pods')
      .find(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined &&
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
    if (byHand()) return
    for (const [holder, nodes] of Object.entries(now))
      for (const node of nodes) wrong.delete(`${holder} ${node}`)
    for (const [holder, nodes] of Object.entries(old)) {
      const left = now[holder] ?? []
      if (nodes.length > 0 && left.length === 0)
        violations.push(`${holder} was emptied of ${nodes.join(' ')}`)
      for (const node of nodes.filter(one => !left.includes(one))) {
        const pod = staysAt(node)
        if (pod)
          wrong.set(`${holder} ${node}`, `${node} was taken out of ${holder}, but ${pod.metadata.name} stays`)
      }
    }
  })

  return {
    answered(pod, { at, body, calledAt }) {
      const object = kubernetes.get('pods', pod.namespace, pod.name)
      const ends = object?.metadata.uid === pod.uid ? object.metadata.deletionTimestamp : undefined
      const endsAt = ends === undefined ? Infinity : Date.parse(ends) - performance.timeOrigin
      // A hook that comes when the time is over can only be answered at once.
      if (at > Math.max(endsAt, calledAt + 250))
        violations.push(
          `the hook of ${pod.name} was answered ${Math.round(at - endsAt)} ms after its deadline`
        )
      if (body.evidence === 'barrier' && !promised.has(pod.uid)) promised.set(pod.uid, { pod, at })
    },
    arrivals: (pod, backend) => void backends.push({ pod, backend }),
    violations() {
      const late = backends.flatMap(({ pod, backend }) => {
        const promise = promised.get(pod.uid)
        const after = promise ? backend.arrivals.filter(at => at > promise.at) : []
        return after.length > 0
          ? [`${after.length} requests reached ${pod.name} after an ack of grade barrier`]
          : []
      })
      return [...violations, ...wrong.values(), ...late]
    }
  }
}
