import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { AckResult, Proved } from '../drain/ack.ts'
import type { Drain, Grade } from '../drain/drain.ts'
import type { Kept } from '../plan/change.ts'
import { REFUSALS } from '../hold/refusal.ts'

/** The values of a label, as docs/metrics.md shows them. The record has every member of a union, and no other. */
const oneOf = (values: object): string => Object.keys(values).join(', ')

const GRADES = { barrier: 1, observed: 1, accepted: 1, timer: 1 } as const satisfies Record<Grade, 1>
const EVIDENCE = oneOf({ ...GRADES, none: 1 } satisfies Record<Proved['evidence'], 1>)
const RESULT = oneOf({
  drained: 1,
  removed: 1,
  'not-routed': 1,
  'last-endpoint': 1,
  'not-terminating': 1,
  deadline: 1,
  skipped: 1
} satisfies Record<AckResult, 1>)
const OUTCOMES = { proven: 1, expired: 1, undone: 1 } as const satisfies Record<
  Exclude<Drain['phase'], 'draining' | 'gone'>,
  1
>
const PHASE = oneOf({ draining: 1, ...OUTCOMES, gone: 1 } satisfies Record<Drain['phase'], 1>)
const KEPT = oneOf({
  'last-node': 1,
  discovery: 1,
  standalone: 1,
  deferred: 1,
  'fixed-address': 1,
  'whole-write': 1,
  'dry-run': 1,
  'address-unknown': 1
} satisfies Record<Kept['why'], 1>)

/** One row of docs/metrics.md. */
export interface MetricRow {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Label name to the values it can take, in words. Bounded: never a pod, a uid or an address. */
  readonly labels: Readonly<Record<string, string>>
}

const PREFIX = 'apisix_drain_'

/** Seconds. From a barrier's round trip (a millisecond) to the longest usual grace. */
const LATENCY = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 60]

export type Metrics = ReturnType<typeof createMetrics>

/** Every metric of the agent, in a registry of its own. Other parts receive this object and define no metrics. */
export function createMetrics() {
  const registry = new Registry()
  const rows: MetricRow[] = []
  const lag = monitorEventLoopDelay({ resolution: 10 })
  lag.enable()

  type Labels<L extends string> = Readonly<Record<L, string>>
  const counter = <L extends string = never>(name: string, help: string, labels = {} as Labels<L>) =>
    new Counter<L>(describe('counter', name, help, labels))
  const gauge = <L extends string = never>(
    name: string,
    help: string,
    labels = {} as Labels<L>,
    collect?: (gauge: Gauge<L>) => void
  ) =>
    new Gauge<L>({
      ...describe('gauge', name, help, labels),
      ...(collect && {
        collect() {
          collect(this)
        }
      })
    })
  const latency = <L extends string = never>(name: string, help: string, labels = {} as Labels<L>) =>
    new Histogram<L>({ ...describe('histogram', name, help, labels), buckets: LATENCY })

  return {
    registry,
    rows: rows as readonly MetricRow[],
    /** Stops the measurement in the background. */
    close: () => void lag.disable(),

    hookAnswers: counter('hook_answers_total', 'preStop hooks answered, refusals left out.', {
      result: RESULT,
      evidence: EVIDENCE
    }),
    hookRefusals: counter('hook_refusals_total', 'preStop hooks refused, so that their fallback ran.', {
      error: oneOf(REFUSALS)
    }),
    hookAbandoned: counter('hook_abandoned_total', 'preStop hooks whose caller went away before the answer.'),
    hookWaiting: gauge('hook_waiting', 'preStop hooks held right now.'),
    hookDuration: latency('hook_duration_seconds', 'From the arrival of a preStop hook to its answer.', {
      result: 'as in hook_answers_total'
    }),

    afterAck: counter(
      'requests_after_ack_total',
      'Requests that a gateway sent to a pod after its hook was answered on the evidence of the barrier. Should be 0.'
    ),
    drainActive: gauge('drain_active', 'Drains by phase.', {
      phase: PHASE
    }),
    drainEnded: counter('drain_ended_total', 'Drains that left the phase draining.', {
      outcome: oneOf(OUTCOMES),
      evidence: EVIDENCE
    }),
    drainPhase: latency(
      'drain_phase_duration_seconds',
      'How long one step of a drain took. decided is whole seconds of the API server clock.',
      { step: 'decided-seen, seen-accepted, seen-confirmed, seen-ack, ack-gone' }
    ),
    syncLag: latency('sync_lag_seconds', 'From Kubernetes deciding until every gateway agreed.', {
      direction: 'removal, arrival (of a pod that became Ready, until every gateway routes to it)'
    }),
    gatewayLag: latency(
      'gateway_lag_seconds',
      'The same for each gateway: from the decision until this one agreed.',
      {
        direction: 'removal, arrival'
      }
    ),
    holderLag: latency(
      'holder_lag_seconds',
      'The same for each holder: until it let go of the node (removal), or every gateway had it from there (arrival).',
      { direction: 'removal, arrival', resource: 'as in inventory_holders' }
    ),

    adminWrites: counter('admin_writes_total', 'Writes to holders through the Admin API.', {
      result: 'accepted, conflict, refused, failed'
    }),
    adminCallDuration: latency('admin_call_duration_seconds', 'Admin API calls.', {
      operation: 'list, get, patch, put, standalone',
      result: 'ok, error'
    }),
    controlCallDuration: latency('control_call_duration_seconds', 'Control API reads of gateways.', {
      result: 'ok, error'
    }),
    barrierCallDuration: latency('barrier_call_duration_seconds', 'Barrier calls to gateways.', {
      operation: 'put, remove, inflight, state',
      result: 'ok, error'
    }),

    gatewayKnown: gauge('gateway_known', 'Gateways that may serve.', { ready: 'true, false' }),
    gatewayUnconfirmed: gauge('gateway_unconfirmed', 'Gateways that at least one drain is waiting for.'),
    gatewayEvidence: gauge('gateway_evidence', 'Gateways by the best evidence they can give now.', {
      evidence: oneOf(GRADES)
    }),

    inventorySuccess: gauge(
      'inventory_last_success_timestamp_seconds',
      'When a complete inventory of the holders was last read.'
    ),
    inventoryHolders: gauge('inventory_holders', 'Holders in the last inventory.', {
      resource: 'upstreams, services, routes, stream_routes, and other Admin API collections'
    }),
    syncHolders: gauge('sync_holders', 'Upstreams that follow a Service.'),
    syncProblems: gauge(
      'sync_problems',
      'Services that ask for an upstream and do not get it: see their Events.'
    ),
    inventoryGhosts: gauge('inventory_ghosts', 'Nodes in APISIX that outlived a pod that was drained.'),
    drift: gauge('drift_nodes', 'Nodes in which EndpointSlices, Admin API and gateways differ.', {
      where: 'admin (against the EndpointSlices), gateway (against the Admin API)',
      kind: 'ghost, missing, stale (a gateway lists what the Admin API does not any more)'
    }),
    driftAge: gauge('drift_oldest_seconds', 'Since when the oldest of them is seen; 0 where there is none.', {
      where: 'as in drift_nodes',
      kind: 'as in drift_nodes'
    }),
    successionHolders: gauge(
      'succession_holders',
      'Holders that list no node that serves: gateways with the plugin send their requests to successors.'
    ),
    successionAge: gauge(
      'succession_oldest_seconds',
      'For how long the owner of the oldest of them has not listed a pod that serves; 0 if there is none.'
    ),
    gatewaySuccess: gauge(
      'gateway_last_success_timestamp_seconds',
      'When the gateway that has been silent for longest last answered, of those that are Ready.',
      { api: 'control, barrier' }
    ),
    inventoryKept: gauge('inventory_kept', 'Nodes of ending pods that stay listed.', {
      why: KEPT
    }),

    watchState: gauge('watch_state', '1 for the state a watch is in, else 0.', {
      kind: 'pods, endpointslices, gateways',
      state: 'connecting, live, stale'
    }),
    watchLastEvent: gauge(
      'watch_last_event_timestamp_seconds',
      'When the watch last heard anything, bookmarks and heartbeats included.',
      { kind: 'pods, endpointslices, gateways' }
    ),
    watchLists: counter('watch_lists_total', 'Times all objects were listed anew.', {
      kind: 'pods, endpointslices, gateways'
    }),
    watchFailures: counter('watch_failures_total', 'Lists and watches that ended with an error.', {
      kind: 'pods, endpointslices, gateways'
    }),
    watchSilences: counter(
      'watch_silences_total',
      'Times a watch did not show what was known to have happened, and was begun anew.',
      { kind: 'pods, endpointslices, gateways' }
    ),
    watchUnreadable: counter('watch_unreadable_total', 'Objects that could not be understood.', {
      kind: 'pods, endpointslices, gateways'
    }),
    watchObjects: gauge('watch_objects', 'Objects held.', { kind: 'pods, endpointslices, gateways' }),

    rounds: counter('loop_rounds_total', 'Rounds of the loop.'),
    roundDuration: latency('loop_round_duration_seconds', 'One round: observe, step, plan, apply, publish.'),
    roundSuccess: gauge('loop_last_success_timestamp_seconds', 'When a round last came to its end.'),

    events: counter('event_writes_total', 'Kubernetes Events written about drains.', { result: 'ok, error' }),
    conditions: counter('condition_writes_total', 'Conditions written on pods about drains.', {
      result: 'ok, error'
    }),
    gates: counter('gate_writes_total', 'Readiness gates opened, by why, and writes of them that failed.', {
      result: 'routed, nobody-lists, waited-too-long, error'
    }),
    errors: counter('error_total', 'Errors by their stable code.', {
      code: 'the codes of agent/base/errors.ts'
    }),

    eventLoopLag: gauge(
      'process_event_loop_lag_seconds',
      'How late timers ran since the last scrape.',
      { quantile: '0.5, 0.99, 1' },
      gauge => {
        for (const quantile of [0.5, 0.99, 1]) {
          // Before the first sample the histogram returns NaN or 0, and 0 less its resolution is negative.
          const ms = lag.percentile(quantile * 100) / 1e6 - 10
          gauge.set({ quantile: String(quantile) }, Math.max(0, ms || 0) / 1000)
        }
        lag.reset()
      }
    ),
    memory: gauge('process_resident_memory_bytes', 'Resident memory of the agent.', {}, gauge =>
      gauge.set(process.memoryUsage.rss())
    ),
    leader: gauge('leader_active', '1 on the agent that leads, or that knows of no other that does.'),
    buildInfo: gauge('build_info', 'Always 1.', { version: 'of the agent', node: 'version of Node.js' })
  }

  function describe<L extends string>(
    kind: MetricRow['kind'],
    name: string,
    help: string,
    labels: Labels<L>
  ) {
    rows.push({ name: `${PREFIX}${name}`, kind, help, labels })
    return {
      name: `${PREFIX}${name}`,
      help,
      labelNames: Object.keys(labels) as L[],
      registers: [registry]
    }
  }
}
