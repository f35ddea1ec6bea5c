import { createRare, createLog, type Log } from '../../agent/base/log.ts'
import type { Ack, Proved } from '../../agent/rules/drain/drain.ts'
import type { PodFact } from '../../agent/rules/drain/facts.ts'
import type { Clock } from '../../agent/base/clock.ts'
import { createMetrics, type Metrics } from '../../agent/report/metrics/metrics.ts'
import { createHookSlots } from '../../agent/hook/prestop.ts'
import type { HoldRequest, Holds, Vouch } from '../../agent/round/hold/hooks.ts'
import { IDLE } from './drain.ts'
import type { ServeParts } from '../../agent/hook/app.ts'

/** A log that keeps its lines for a test to read. */
export function memoryLog(): { readonly log: Log; readonly lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
  return { log: createLog({ level: 'debug' }, { write }), lines }
}

export const ackFor = (pod: PodFact, differs: Partial<Proved> = {}): Proved => ({
  status: 200,
  result: 'drained',
  evidence: 'barrier',
  places: 1,
  noReplacement: false,
  pod: { namespace: pod.namespace, name: pod.name, uid: pod.uid },
  elapsedMs: 4,
  gateways: [IDLE],
  longLived: null,
  holders: [],
  successors: [],
  why: 'every gateway avoids it and nothing is in flight',
  ...differs
})

interface Held extends HoldRequest {
  readonly signal: AbortSignal
  readonly answer: (ack?: Ack) => void
  readonly fail: (reason: unknown) => void
}

/** A loop that a test controls: `held` are the waiting hooks, in the order of arrival. */
export interface ManualHolds extends Holds {
  readonly held: Held[]
  readonly pods: PodFact[]
  /** Pods that only the API server knows. */
  readonly behind: PodFact[]
  vouch: Vouch
  /** If set, requests to the API server fail with this error. */
  askError: Error | undefined
  /** Called whenever a hook begins to wait. */
  onHeld: () => void
}

export function manualHolds(...pods: PodFact[]): ManualHolds {
  const holds: ManualHolds = {
    held: [],
    pods,
    behind: [],
    vouch: { ok: true },
    askError: undefined,
    onHeld: () => {},
    canVouch: () => holds.vouch,
    serverBehindMs: () => 0,
    findByIp: ip => holds.pods.filter(pod => pod.ips.includes(ip)),
    async freshByIp(ip) {
      if (holds.askError) throw holds.askError
      return [...holds.pods, ...holds.behind].filter(pod => pod.ips.includes(ip))
    },
    async find(namespace, name) {
      if (holds.askError) throw holds.askError
      return [...holds.pods, ...holds.behind].find(pod => pod.namespace === namespace && pod.name === name)
    },
    hold(request, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<Ack>()
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      const answer = (ack: Ack = ackFor(request.pod)) => resolve(ack)
      holds.held.push({ ...request, signal, answer, fail: reason => reject(reason) })
      holds.onHeld()
      return promise
    }
  }
  return holds
}

/** Everything that the HTTP side needs, around a loop that the test controls. Close `metrics` afterwards. */
export function serveParts(
  holds: Holds,
  clock: Clock,
  differs: Partial<ServeParts> = {}
): ServeParts & { readonly metrics: Metrics; readonly lines: Record<string, unknown>[] } {
  const { log, lines } = memoryLog()
  const metrics = createMetrics()
  return {
    holds,
    isOnlyApisix: async () => false,
    clock,
    log,
    lines,
    metrics,
    slots: createHookSlots({ maxHooks: 10, maxHooksPerPod: 2 }),
    rare: createRare(clock),
    reserveMs: 3000,
    missing: () => [],
    alive: () => ({ ok: true }),
    exposition: metrics.registry,
    ...differs
  } as ServeParts & { readonly metrics: Metrics; readonly lines: Record<string, unknown>[] }
}
