import { ERRORS } from '../../base/errors.ts'
import { REFUSALS } from '../../round/hold/hooks.ts'
import {
  createGatewayNames,
  ANSWERS,
  CALLS_OF,
  DECISIONS,
  DIRECTIONS,
  EVIDENCE,
  KEPT_REASONS,
  keysOf,
  PHASES,
  RESULTS,
  UNSAFE,
  USUAL_RESULTS,
  WATCHES,
  createMetricRegistry
} from './metric-registry.ts'

/** Seconds. From a barrier's round trip (a millisecond) to the longest timeout of a call. */
const CALLS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Seconds. From the quickest seal to the longest usual grace. */
const LAGS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60]

export type Metrics = ReturnType<typeof createMetrics>

/**
 * Every metric of the agent, in a registry of its own. Other parts receive this object and define no metrics. Counters begin
 * with 0 in every series, because Prometheus cannot see the increase that creates one. Histograms do so in the usual series
 * only: no alert rests on them, and each takes 16 lines of every scrape.
 */
export function createMetrics() {
  const { registry, rows, counter, gauge, histogram } = createMetricRegistry()

  const GATEWAY = 'namespace/name of the gateway'
  const afterAck = counter(
    'requests_after_ack_total',
    'Requests that a gateway sent to a pod after its hook was answered on the evidence of the barrier. Should be 0.',
    { gateway: GATEWAY }
  )
  const gatewayExpired = counter(
    'gateway_expired_total',
    'Drains that expired without the confirmation of this gateway. Left out: last nodes, drains that only waited for requests in flight, and pods without a hook to which nothing leads.',
    { gateway: GATEWAY }
  )
  const gatewayLag = histogram(
    LAGS,
    'gateway_lag_seconds',
    'From Kubernetes deciding until this gateway agreed to a removal or an arrival.',
    { direction: DIRECTIONS, gateway: GATEWAY }
  )
  const begin = (gateway: string) => {
    afterAck.inc({ gateway }, 0)
    gatewayExpired.inc({ gateway }, 0)
    for (const direction of DIRECTIONS) gatewayLag.zero({ direction, gateway })
  }
  const forget = (gateway: string) => {
    afterAck.remove({ gateway })
    gatewayExpired.remove({ gateway })
    for (const direction of DIRECTIONS) gatewayLag.remove({ direction, gateway })
  }

  return {
    registry,
    rows,
    /** The values of the label `gateway`. */
    gatewayNames: createGatewayNames(begin, forget),

    hookAnswers: counter(
      'hook_answers_total',
      'preStop hooks answered: one for each pod, restart and result. Left out: refusals, and calls whose own `?timeout=` was over.',
      { result: RESULTS, evidence: EVIDENCE },
      RESULTS.flatMap(result => ANSWERS[result].map(evidence => ({ result, evidence })))
    ),
    hookRefusals: counter('hook_refusals_total', 'preStop hooks refused, so that their fallback ran.', {
      error: keysOf(REFUSALS)
    }),
    hookAbandoned: counter('hook_abandoned_total', 'preStop hooks whose caller went away before the answer.'),
    hookWaiting: gauge('hook_waiting', 'preStop hooks held right now.'),
    hookDuration: histogram(
      LAGS,
      'hook_duration_seconds',
      'From the arrival of a preStop hook to its answer.',
      {
        result: RESULTS
      },
      USUAL_RESULTS.map(result => ({ result }))
    ),

    workloadsWithoutHook: gauge(
      'workloads_without_hook',
      'Routed workloads whose pods have no hook (`without`), a hook without a fallback (`bare`), or a container without a hook (`early`).',
      { why: UNSAFE }
    ),
    afterAck,
    drains: gauge('pods_ending', 'Pods by the phase of their drain.', { phase: PHASES }),
    syncLag: histogram(
      LAGS,
      'sync_lag_seconds',
      'From Kubernetes deciding until every gateway had sealed the pod, or from a pod becoming Ready until every gateway routed to it.',
      { direction: DIRECTIONS }
    ),
    gatewayLag,

    adminWrites: counter('admin_writes_total', 'Writes to holders through the Admin API.', {
      result: ['accepted', 'conflict', 'refused', 'failed']
    }),
    callDuration: histogram(
      CALLS,
      'call_duration_seconds',
      'Calls of the Admin API, and of the Control API and the barrier of gateways.',
      {
        api: keysOf(CALLS_OF),
        operation: [...new Set(Object.values(CALLS_OF).flat())],
        result: ['ok', 'error']
      },
      keysOf(CALLS_OF).flatMap(api => CALLS_OF[api].map(operation => ({ api, operation, result: 'ok' })))
    ),

    gatewayKnown: gauge('gateway_known', 'Gateways that may serve.', { ready: 'true, false' }),
    gatewayExpired,
    // Begins with the gateway's own count, because 0 before the first answer would show as an increase.
    pluginRequests: counter(
      'plugin_requests_total',
      `Requests on which the plugin of a gateway decided since the gateway started. moved: to another node; succeeded: to a successor; refused: 503, only sealed nodes were left; bypassed: to a pod that ends, without another choice; late: to a sealed node; error: as without the plugin, because it failed.`,
      { gateway: GATEWAY, decision: DECISIONS },
      []
    ),
    gatewayEvidence: gauge('gateway_evidence', 'Gateways by the best evidence they can give now.', {
      evidence: EVIDENCE
    }),
    gatewayUnfit: gauge(
      'gateway_unfit',
      '1 for a Ready gateway whose barrier cannot be used although one is configured, else 0.',
      { gateway: GATEWAY }
    ),

    inventorySuccess: gauge(
      'inventory_last_success_timestamp_seconds',
      'When a complete inventory of the holders was last read.'
    ),
    ghostAge: gauge(
      'ghost_oldest_seconds',
      'For how long the pod of the oldest ghost, a node that is still listed, has been gone; 0 if there is none.'
    ),
    ownerBehind: gauge(
      'owner_behind_seconds',
      'For how long the owner of a holder has not written the oldest change of ready endpoints, whatever later rollouts replaced; 0 if there is none.'
    ),
    gatewayBehind: gauge(
      'gateway_behind_seconds',
      'For how long a Ready gateway has lacked the oldest change that it should route by, or has not sealed a pod that ends; 0 if there is none.',
      { gateway: GATEWAY }
    ),
    successionAge: gauge(
      'succession_oldest_seconds',
      'Of the holders that list no node that serves, so that gateways with the plugin use successors: for how long the owner of the oldest one has not listed a pod that serves; 0 if there is none.'
    ),
    gatewaySuccess: gauge('gateway_last_success_timestamp_seconds', 'When a Ready gateway last answered.', {
      api: ['control', 'barrier'],
      gateway: GATEWAY
    }),
    inventoryKept: gauge('inventory_kept', 'Nodes of ending pods that stay listed.', { why: KEPT_REASONS }),

    watchState: gauge('watch_state', '1 for the state a watch is in, else 0.', {
      kind: WATCHES,
      state: 'connecting, live, stale'
    }),
    watchFailures: counter('watch_failures_total', 'Lists and watches that ended with an error.', {
      kind: WATCHES
    }),
    watchSilences: counter(
      'watch_silences_total',
      'Times a watch did not show what was known to have happened, and was begun anew.',
      { kind: WATCHES }
    ),

    roundDuration: histogram(
      CALLS,
      'loop_round_duration_seconds',
      'One round: observe, step, plan, apply, publish.'
    ),
    roundSuccess: gauge('loop_last_success_timestamp_seconds', 'When a round last came to its end.'),

    errors: counter(
      'error_total',
      'Errors by their stable code.',
      { code: 'the codes of agent/base/errors.ts' },
      keysOf(ERRORS).map(code => ({ code }))
    ),

    buildInfo: gauge('build_info', 'Always 1.', { version: 'of the agent', node: 'version of Node.js' })
  }
}
