import { z } from 'zod'
import { SNAPSHOT_VERSION, type AgentView } from '../snapshot/snapshot.ts'
import type { AckView, DrainLag, DrainView } from '../snapshot/drain-view.ts'
import type { DrainCounts, StartCounts } from './counts.ts'

/** `by`: the id of the agent by whose clock the times are; absent: the agent that answers. Times are passed on as they were. */
type By<T> = T & { readonly by?: string | undefined }

/** The state that one agent shares with the others: `GET /api/agent?of=<id>&after=<seq>&from=<id of the agent that asks>`. */
export interface Share {
  readonly version: typeof SNAPSHOT_VERSION
  /** When the share was made, by the clock of the agent that made it. */
  readonly at: number
  /** The number of its last change. */
  readonly seq: number
  /** The agent that made it. */
  readonly agent: AgentView
  /** The uids of all its drains. */
  readonly live: readonly string[]
  /** The drains that changed after `after`. */
  readonly drains: readonly DrainView[]
  /** Finished drains, answers and lags that changed after `after`: its own, and those that it got from other agents. */
  readonly past: readonly By<DrainView>[]
  readonly acks: readonly By<AckView>[]
  readonly lags: readonly By<DrainLag>[]
  /** How far the clocks that it knows are ahead of its own, in ms, by the id of the agent. */
  readonly clocks?: Readonly<Record<string, number>> | undefined
  /** The drains that it has counted, and those that an older agent had counted before. */
  readonly counts: DrainCounts
  /** Every start of an agent that it knows. */
  readonly starts: readonly StartCounts[]
}

const grade = z.enum(['barrier', 'observed', 'accepted', 'timer'])
const time = z.number()
const moment = time.nullable()
const by = z.string().optional()
const gateway = z.looseObject({
  name: z.string(),
  grade: grade.optional(),
  at: time.optional(),
  sealedAt: time.optional(),
  idleAt: time.optional(),
  why: z.string()
})
const drain = z.looseObject({
  uid: z.string(),
  namespace: z.string(),
  pod: z.string(),
  owner: z.string().nullable(),
  ips: z.array(z.string()),
  phase: z.enum(['draining', 'proven', 'expired', 'gone', 'undone']),
  witnesses: z.record(z.string(), time),
  deadline: time,
  moments: z.looseObject({
    decidedAt: moment,
    seenAt: time,
    hookAt: moment,
    sliceAt: moment,
    acceptedAt: moment,
    sealedAt: moment,
    confirmedAt: moment,
    idleAt: moment,
    ackAt: moment,
    goneAt: moment
  }),
  verdict: z
    .looseObject({
      kind: z.enum(['waiting', 'proven']),
      grade: grade.nullable(),
      result: z.string().nullable(),
      lastEndpoint: z.boolean()
    })
    .nullable(),
  unlisted: z.boolean(),
  why: z.string(),
  longLived: z
    .looseObject({ upgraded: z.number(), sse: z.number(), streams: z.number(), oldestMs: z.number() })
    .nullable(),
  gateways: z.array(gateway),
  holders: z.array(
    z.looseObject({
      key: z.string(),
      state: z.enum(['listed', 'writing', 'removed', 'kept-last', 'foreign', 'dry-run', 'failed']),
      why: z.string(),
      at: moment
    })
  ),
  afterAck: z.number().nullable(),
  hooks: z.number()
})
const ack = z.looseObject({
  by,
  at: time,
  ack: z.looseObject({
    pod: z.looseObject({ namespace: z.string(), name: z.string(), uid: z.string() }),
    elapsedMs: z.number(),
    status: z.union([z.literal(200), z.literal(503)]),
    result: z.string(),
    evidence: z.string(),
    gateways: z.array(gateway),
    why: z.string()
  })
})
const lag = z.looseObject({
  by,
  at: time,
  ms: z.number(),
  idleMs: z.number().nullish(),
  grade,
  uid: z.string(),
  namespace: z.string(),
  owner: z.string().nullable()
})
const agent = z.looseObject({
  id: z.string(),
  name: z.string(),
  version: z.string(),
  startedAt: time,
  leads: z.boolean(),
  mode: z.string().nullable(),
  dryRun: z.boolean(),
  missingParts: z.array(z.looseObject({ part: z.string(), why: z.string() })),
  proving: z.number(),
  gateways: z.number(),
  plugins: z.array(z.string())
})
const count = z.number().min(0)
const share = z.looseObject({
  at: time,
  seq: count,
  agent,
  live: z.array(z.string()),
  drains: z.array(drain),
  past: z.array(drain.extend({ by })),
  acks: z.array(ack),
  lags: z.array(lag),
  clocks: z.record(z.string(), z.number()).optional(),
  counts: z.looseObject({
    drains: count,
    proven: count,
    graded: z.looseObject({ barrier: count, observed: count, accepted: count, timer: count }),
    expired: count,
    undone: count
  }),
  starts: z.array(z.looseObject({ id: z.string(), startedAt: time, hooks: count, savedMs: z.number() }))
})
const versioned = z.looseObject({ version: z.number() })

/** A share, or why it cannot be used: `other` is the version of an agent that this one cannot read. */
type Read =
  | { readonly kind: 'share'; readonly share: Share }
  | { readonly kind: 'other'; readonly version: number }
  | { readonly kind: 'garbled' }

/** Reads the answer of another agent. Nothing of it reaches the page unchecked. */
export function readShare(text: string): Read {
  const json = parsed(text)
  const { success, data } = versioned.safeParse(json)
  if (!success) return { kind: 'garbled' }
  if (data.version !== SNAPSHOT_VERSION) return { kind: 'other', version: data.version }
  // A later version may add fields, which are passed on.
  const read = share.safeParse(json)
  return read.success ? { kind: 'share', share: read.data as unknown as Share } : { kind: 'garbled' }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
