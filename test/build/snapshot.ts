import { GATEWAY } from './gateway.ts'
import { waiting } from './drain.ts'
import type { Drain } from '../../agent/rules/drain/drain.ts'
import { drainView } from '../../agent/report/show/build-snapshot.ts'
import { SNAPSHOT_VERSION, type Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { createStatuses } from '../../agent/round/gather/drain-status.ts'
import { pod, terminating } from './pod.ts'

export const totals = {
  graded: { barrier: 0, observed: 0 },
  expired: 0,
  hooks: 0,
  savedMs: 0
}

/** A waiting drain of web-1. */
export function waitingDrain(): Drain {
  const fact = pod('web-1', terminating(1_000_000))
  return {
    uid: fact.uid,
    pod: fact,
    decidedAt: 1_000_000,
    witnesses: { deletion: 1_000_001, hook: 1_000_040 },
    since: 1_000_001,
    deadline: 1_027_000,
    stops: [],
    ports: [],
    isWhole: true,
    phase: 'draining',
    verdict: waiting({
      why: 'the removal is being written',
      gateways: [{ name: 'apisix-0', grade: undefined, at: undefined, why: 'not asked yet' }],
      holders: [{ key: 'upstreams/web', state: 'writing', why: '' }]
    })
  }
}

/** Its view. */
export function waitingView() {
  const drain = waitingDrain()
  const status = createStatuses().of(drain.uid)
  status.hookAt = 1_000_040
  return drainView(drain, status)
}

/** The snapshot of a quiet agent; a test states only the differences. */
export function sources(differs: Partial<Snapshot> = {}): Snapshot {
  return {
    version: SNAPSHOT_VERSION,
    at: 1_000_100,
    agent: {
      name: 'apisix-drain-0',
      version: '0.0.0',
      startedAt: 900_000,
      dryRun: false,
      sleepMs: 15_000,
      reach: { admin: 'http://127.0.0.1:9180', control: { port: 9090 }, barrier: null },
      vouch: { ok: true },
      apisix: { mode: 'etcd' },
      leader: { leads: true, holder: 'agent-0', lease: undefined, why: '' },
      missingParts: []
    },
    watches: [{ kind: 'pods', state: 'live', lastEventAt: 1_000_001, objects: 1, problem: '' }],
    gateways: [
      {
        ...GATEWAY,
        host: null,
        available: 'observed',
        why: 'our plugin is not configured',
        control: { lastSuccessAt: 1_000_050, lastAttemptAt: 1_000_050, problem: '' },
        barrier: null,
        plugin: null,
        counts: null,
        workers: []
      }
    ],
    inventory: {
      lastSuccessAt: 1_000_000,
      problem: '',
      hooks: { routed: 0, without: [], bare: [], early: [], counts: { without: 0, bare: 0, early: 0 } }
    },
    holders: [],
    drains: [waitingView()],
    arrivals: [],
    past: [],
    acks: [],
    lags: [],
    totals,
    ...differs
  }
}

/** The moments of a drain of which only the first sight is known. */
export const NO_MOMENTS = {
  decidedAt: null,
  hookAt: null,
  acceptedAt: null,
  sealedAt: null,
  confirmedAt: null,
  idleAt: null,
  ackAt: null,
  goneAt: null
}
