import type { HolderView, ArrivalView, GatewayView, Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { DrainLag, DrainView } from '../../agent/report/snapshot/drain-view.ts'
import { createRandom } from '../../sandbox/random.ts'
import { NO_MOMENTS, sources } from '../build/snapshot.ts'

const QUIET = sources()

/** The content of the page in a test: an agent that has run for an hour. */
export interface Scene {
  readonly now: number
  readonly live: number
  readonly past: number
  readonly holders: number
  readonly gateways?: number
  /** A part of every name that operators choose. */
  readonly name?: string
}

/** Makes the snapshot of a scene. Equal arguments give equal snapshots. */
export function sceneOf({ now, live, past, holders, gateways = 3, name = 'web' }: Scene): Snapshot {
  const random = createRandom(7)
  const names = Array.from({ length: gateways }, (_, i) => `apisix-${i}`)
  const lags = Array.from({ length: past }, (_, i): DrainLag => {
    const ms = 14 + 26 * random() + (random() > 0.97 ? 400 * random() : 0)
    const { namespace, owner } = podOf(name, 5000 + i)
    return { at: now - 4000 - i * 9000, ms, uid: `past-${i}`, namespace, owner }
  })
  return {
    ...QUIET,
    at: now,
    agent: { ...QUIET.agent, version: '0.3.0', startedAt: now - 3_600_000 },
    watches: ['pods', 'endpointslices', 'gateways'].map(kind => ({
      kind,
      state: 'live' as const,
      lastEventAt: now - 300,
      objects: 240,
      problem: ''
    })),
    gateways: names.map((gateway, i) => gatewayOf(gateway, i, now)),
    inventory: {
      ...QUIET.inventory,
      lastSuccessAt: now - 900,
      hooks: HOOKS
    },
    holders: Array.from({ length: holders }, (_, i) => holderOf(name, i, now)),
    drains: Array.from({ length: live }, (_, i) => waiting(name, i, now - 40 - 900 * random(), names)),
    past: lags.map(({ at, ms }, i) => over(name, i, at - ms, ms, names, random)),
    lags,
    arrivals: Array.from({ length: Math.min(past, 40) }, (_, i) => arrivalOf(name, i, now, names, random)),
    totals: {
      ...QUIET.totals,
      graded: { ...QUIET.totals.graded, barrier: past - Math.floor(past / 40) },
      expired: Math.floor(past / 40),
      hooks: past,
      savedMs: past * 14_900
    }
  }
}

function gatewayOf(name: string, i: number, now: number): GatewayView {
  const fresh = { lastSuccessAt: now - 120 * i, lastAttemptAt: now - 120 * i, problem: '' }
  return {
    id: `uid-${name}`,
    name,
    ip: `10.0.9.${i + 1}`,
    host: `host-${i + 1}`,
    ready: true,
    terminating: false,
    available: 'barrier',
    why: '',
    control: fresh,
    barrier: fresh,
    plugin: '0.3.0',
    counts: { moved: 120 + 7 * i, succeeded: 2, refused: i, bypasses: 3 },
    workers: [0, 1, 2, 3].map(id => ({
      id,
      revision: 4115 - (i === 2 && id === 3 ? 2 : 0),
      appliedAt: now - 40_000
    }))
  }
}

function holderOf(name: string, i: number, now: number): HolderView {
  const node = (n: number) => `10.${1 + (i % 200)}.${n}.7:8080`
  return {
    key: i % 9 === 0 ? `routes/${name}-${i}/upstream` : `upstreams/${name}-${i}`,
    name: i % 3 === 0 ? `shop_${name}_${i}_http` : null,
    owner: i % 2 === 0 ? 'ingress-controller-2' : 'unknown',
    form: 'map',
    service: i % 7 === 0 ? null : `${i % 2 === 0 ? 'shop' : 'pay'}/${name}-${i}`,
    nodes: [1, 2, 3, 4, 5, 6].slice(0, 2 + (i % 5)).map(node),
    ghosts: i % 500 === 3 ? [{ node: node(1), since: now - 8000 }] : [],
    missing: i % 500 === 9 ? [{ node: node(8), since: now - 12_000 }] : [],
    notReady: [],
    revision: i % 9 === 0 ? 4000 : i % 500 === 11 ? 4115 : 4001 + (i % 100),
    behind: behindOf(i, now),
    onSuccessors: i % 500 === 7 ? { since: now - 95_000, nodes: [node(9)] } : null
  }
}

function behindOf(i: number, now: number): HolderView['behind'] {
  if (i % 500 === 9) return { since: now - 12_000, owner: now - 12_000, cause: 'owner', gateways: [] }
  if (i % 500 !== 11) return null
  const since = now - 4000
  const why = 'a worker has applied revision 4113, and not 4115'
  return {
    since,
    owner: null,
    cause: 'gateways',
    gateways: [{ gateway: 'apisix-2', since, why }]
  }
}

function arrivalOf(
  name: string,
  i: number,
  now: number,
  gateways: readonly string[],
  random: () => number
): ArrivalView {
  const readyAt = now - 2000 - i * 13_000
  const ms = 600 + 1500 * random()
  const waits = i === 0
  const { namespace, pod } = podOf(name, 9000 + i)
  return {
    uid: `new-${i}`,
    namespace,
    pod,
    readyAt,
    routedAt: waits ? null : readyAt + ms,
    holders: [`upstreams/${name}-${i}`],
    why: waits ? 'apisix-2: a worker has applied revision 4113, and not 4115' : '',
    gateways: gateways.map((gateway, g) => ({
      name: gateway,
      at: waits && g === gateways.length - 1 ? null : readyAt + ms - g * 3
    }))
  }
}

const podOf = (name: string, i: number) => ({
  namespace: 'shop',
  pod: `${name}-7d4b9c6f5d-${(i * 7919).toString(36).padStart(5, 'x')}`,
  owner: `ReplicaSet/${name}-7d4b9c6f5d`,
  ips: [`10.1.${i % 250}.7`]
})

function waiting(name: string, i: number, seenAt: number, gateways: readonly string[]): DrainView {
  return {
    ...podOf(name, i),
    uid: `live-${i}`,
    phase: 'draining',
    deadline: seenAt + 27_000,
    moments: {
      ...NO_MOMENTS,
      decidedAt: Math.floor(seenAt / 1000) * 1000,
      seenAt,
      hookAt: seenAt + 35,
      acceptedAt: i % 2 === 0 ? seenAt + 20 : null
    },
    verdict: { kind: 'waiting', grade: null, places: null, lastEndpoint: false },
    unlisted: false,
    why: `${gateways.at(-1)}: 2 requests are in flight`,
    gateways: gateways.map((gateway, g) =>
      g === gateways.length - 1
        ? { name: gateway, grade: undefined, at: undefined, why: '2 requests are in flight' }
        : { name: gateway, grade: 'barrier', at: seenAt + 6 + g * 4, why: '' }
    ),
    holders: [{ key: `upstreams/${name}-1`, state: 'writing', why: '', at: null }],
    afterAck: null,
    longLived: null,
    hooks: 1
  }
}

function over(
  name: string,
  i: number,
  seenAt: number,
  ms: number,
  gateways: readonly string[],
  random: () => number
): DrainView {
  const failed = i % 40 === 39
  const confirmedAt = seenAt + ms
  return {
    ...podOf(name, 5000 + i),
    uid: `past-${i}`,
    phase: 'gone',
    deadline: seenAt + 27_000,
    moments: {
      decidedAt: Math.floor(seenAt / 1000) * 1000,
      seenAt,
      hookAt: seenAt + 5 + 9 * random(),
      acceptedAt: seenAt + ms * (0.3 + 0.3 * random()),
      sealedAt: failed ? null : confirmedAt - 2,
      confirmedAt: failed ? null : confirmedAt,
      idleAt: failed ? null : confirmedAt,
      ackAt: failed ? seenAt + 27_000 : confirmedAt + 1,
      goneAt: (failed ? seenAt + 27_000 : confirmedAt) + 600 + 1400 * random()
    },
    verdict: failed
      ? { kind: 'waiting', grade: null, places: null, lastEndpoint: false }
      : { kind: 'proven', grade: 'barrier', places: 1, lastEndpoint: false },
    unlisted: false,
    why: failed
      ? 'waiting (apisix-2: no connection to the barrier)'
      : 'every gateway has sealed it and nothing is in flight',
    gateways: gateways.map((gateway, g) => {
      const last = g === gateways.length - 1
      return failed && last
        ? {
            name: gateway,
            grade: undefined,
            at: undefined,
            why: 'no connection to the barrier (BARRIER_UNREACHABLE)'
          }
        : { name: gateway, grade: 'barrier', at: last ? confirmedAt : seenAt + ms * (0.5 + 0.2 * g), why: '' }
    }),
    holders: [{ key: `upstreams/${name}-1`, state: 'removed', why: '', at: seenAt + ms * 0.4 }],
    afterAck: failed ? null : 0,
    longLived: null,
    hooks: 0
  }
}

const HOOKS = {
  routed: 14,
  without: [],
  bare: [],
  early: [],
  counts: { without: 0, bare: 0, early: 0 }
}
