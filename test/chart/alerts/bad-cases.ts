import { STEP_S, STEPS } from './record.ts'

/** The series that differ from a good rollout, and the only alert that fires then. */
export interface BadCase {
  /** Series as the agent writes them, with their values from the start of the test. */
  readonly series: Readonly<Record<string, string>>
  /** When the alert fires, as Prometheus writes durations. */
  readonly at: string
  /** The labels of the alert, without its name and severity. */
  readonly labels?: Readonly<Record<string, string>>
}

/** The number of steps (five minutes) before each fault begins. */
const CALM = 300 / STEP_S
const REST = STEPS - CALM - 1

/** The value before the fault, and the value after it. */
const then = (before: number, after: number) => `${before}x${CALM} ${after}x${REST}`
/** A counter that stays the same until the fault, and then increases with every scrape. */
const counting = `0x${CALM} 1+1x${REST}`
/** A timestamp that follows the clock until the fault, and then stays the same. */
const stopped = `0+${STEP_S}x${CALM} ${CALM * STEP_S}x${REST}`
/** A number of seconds that begins to count at the fault. */
const ageing = `0x${CALM} ${STEP_S}+${STEP_S}x${REST}`

/** One case for each alert of the chart, by its name. */
export const BAD_CASES: Readonly<Record<string, BadCase>> = {
  ApisixDrainDown: {
    series: { 'apisix_drain_build_info{*}': `1x${CALM} stale` },
    at: '8m',
    labels: { namespace: 'apisix', service: 'apisix-drain' }
  },
  ApisixDrainHooksRefused: {
    series: { 'apisix_drain_hook_refusals_total{error="cannot-vouch"}': counting },
    at: '11m',
    labels: { error: 'cannot-vouch' }
  },
  ApisixDrainHooksAtDeadline: {
    // A single hook must be enough for the alert, although it is the first increase of this series.
    series: { 'apisix_drain_hook_answers_total{result="unproved",evidence="none"}': then(0, 1) },
    at: '6m'
  },
  ApisixDrainRequestsAfterAck: {
    series: { 'apisix_drain_requests_after_ack_total{gateway="apisix-1"}': then(0, 1) },
    at: '6m',
    labels: { gateway: 'apisix-1' }
  },
  ApisixDrainWatchNotLive: {
    series: { 'apisix_drain_watch_state{kind="pods",state="live"}': then(1, 0) },
    at: '7m',
    labels: { kind: 'pods' }
  },
  ApisixDrainLoopStuck: {
    series: { apisix_drain_loop_last_success_timestamp_seconds: stopped },
    at: '7m'
  },
  ApisixDrainInventoryStale: {
    series: { apisix_drain_inventory_last_success_timestamp_seconds: stopped },
    at: '12m'
  },
  ApisixDrainAdminWritesFail: {
    series: { 'apisix_drain_admin_writes_total{result="refused"}': counting },
    at: '11m',
    labels: { result: 'refused' }
  },
  ApisixDrainNoGateway: {
    series: { 'apisix_drain_gateway_known{ready="true"}': then(2, 0) },
    at: '7m'
  },
  ApisixDrainGatewayUnconfirmed: {
    // A single drain must be enough for the alert. A gauge would show it only during the drain.
    series: { 'apisix_drain_gateway_expired_total{gateway="apisix-0"}': then(0, 1) },
    at: '6m',
    labels: { gateway: 'apisix-0' }
  },
  ApisixDrainEvidenceLost: {
    series: { 'apisix_drain_gateway_unfit{gateway="apisix-1"}': then(0, 1) },
    at: '16m',
    labels: { gateway: 'apisix-1' }
  },
  ApisixDrainGhosts: { series: { apisix_drain_ghost_oldest_seconds: ageing }, at: '11m' },
  ApisixDrainControllerBehind: {
    series: { apisix_drain_succession_oldest_seconds: ageing },
    at: '6m'
  },
  ApisixDrainOwnerBehind: { series: { apisix_drain_owner_behind_seconds: ageing }, at: '6m' },
  ApisixDrainGatewayBehind: {
    series: { 'apisix_drain_gateway_behind_seconds{gateway="apisix-1"}': ageing },
    at: '6m',
    labels: { gateway: 'apisix-1' }
  },
  ApisixDrainGatewaySilent: {
    series: {
      'apisix_drain_gateway_last_success_timestamp_seconds{api="barrier",gateway="apisix-1"}': stopped
    },
    at: '10m',
    labels: { api: 'barrier', gateway: 'apisix-1' }
  }
}

/** At the first scrape the agent has read nothing, so its time is 0 (1970). It reads within a few seconds. */
const late = `0 ${STEP_S}+${STEP_S}x${STEPS - 1}`

/** For each case, the series that differ from those of the recorded rollout. No alert may fire. */
export const GOOD_CASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a rollout': {},
  'an agent that was scraped before it had read anything': {
    apisix_drain_loop_last_success_timestamp_seconds: late,
    apisix_drain_inventory_last_success_timestamp_seconds: late,
    'apisix_drain_gateway_last_success_timestamp_seconds{api="control",gateway="apisix-0"}': late,
    'apisix_drain_gateway_last_success_timestamp_seconds{api="barrier",gateway="apisix-0"}': late
  },
  'an agent that is updated: hooks go to the other one': {
    'apisix_drain_hook_refusals_total{error="shutting-down"}': counting
  },
  'a gateway that is restarted': {
    'apisix_drain_gateway_unfit{gateway="apisix-1"}': `0x${CALM} 1x2 0x${REST - 3}`,
    'apisix_drain_gateway_behind_seconds{gateway="apisix-1"}': `0x${CALM} ${STEP_S}+${STEP_S}x2 0x${REST - 3}`
  },
  'requests in flight for minutes, and a planned last endpoint': {
    'apisix_drain_hook_answers_total{result="stays",evidence="none"}': counting
  },
  'a writer that is a few seconds late': {
    apisix_drain_owner_behind_seconds: `0x${CALM} ${STEP_S}+${STEP_S}x2 0x${REST - 3}`,
    apisix_drain_succession_oldest_seconds: `0x${CALM} ${STEP_S} 0x${REST - 1}`
  },
  'a write in conflict, which is made again': {
    'apisix_drain_admin_writes_total{result="conflict"}': counting,
    'apisix_drain_admin_writes_total{result="failed"}': then(0, 1)
  }
}
