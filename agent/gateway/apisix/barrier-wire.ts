import { z } from 'zod'

/** One address of one pod in a gateway's deny-list (docs/barrier-api.md). */
export interface BarrierEntry {
  readonly uid: string
  /** Without brackets. */
  readonly ip: string
  readonly port?: number
  readonly state: 'draining' | 'sealed'
  /** Seconds, 1 to 3600. */
  readonly ttl: number
  /** With `sealed`: seal only if the workers' word still has this tag, else leave it draining. */
  readonly sealIf?: string
  /** The addresses that take over, `address:port`, by port of the ending pod. An older plugin refuses the field. */
  readonly successors?: Readonly<Record<string, readonly string[]>>
  /** The release of agents that puts it. An older plugin refuses the field. */
  readonly by?: string
  /** For how many seconds the pod keeps its sessions, 0 to 86 400; only with `draining`. An older plugin refuses it, and `kept`. */
  readonly keep?: number
  /** For how many seconds it has kept them already. */
  readonly kept?: number
}

/** An entry as the gateway reports it. */
export type BarrierState = z.infer<typeof told>
export type WorkersWord = z.infer<typeof word>
export type BarrierAnswer = z.infer<typeof answer>
export type BarrierGateway = z.infer<typeof gatewayState>
export type LongLivedAt = z.infer<typeof longLived>

/** The workers' reports on an entry, for one gateway. It is complete if `said` equals `asked`; it has a tag only then. */
const word = z.looseObject({
  said: z.number(),
  asked: z.number(),
  /** How many places would use the address: the highest count of any worker. The same goes for `hidden`. */
  places: z.number(),
  /** Names of places in which some worker has no other choice that is not denied. */
  sole: z.array(z.string()),
  /** Names of places in which only successors are left. An older plugin does not send it. */
  succeeded: z.array(z.string()).optional(),
  /** How many places a worker cannot inspect. */
  hidden: z.number(),
  /** The other choices of all other places, each as `address:port`; `more` of them are left out. */
  others: z.array(z.looseObject({ places: z.number(), nodes: z.array(z.string()), more: z.number() })),
  /** How many places have their other choices left out. */
  cut: z.number(),
  tag: z.string().optional(),
  /** Present if every worker seals and counts L4 sessions too. An older plugin does not send it. */
  l4: z.boolean().optional()
})
const told = z.looseObject({
  uid: z.string(),
  ip: z.string(),
  port: z.number().optional(),
  state: z.enum(['draining', 'sealed']),
  ttl: z.number(),
  // The kinds are there if `long` is above 0. An older plugin counts upgraded connections only, and names no kinds.
  inflight: z.looseObject({
    requests: z.number(),
    long: z.number(),
    upgraded: z.number().optional(),
    sse: z.number().optional(),
    streams: z.number().optional(),
    /** Age of the oldest of them, in s. */
    oldest: z.number().optional()
  }),
  bypasses: z.number(),
  /** Requests sent there although it was sealed. An older plugin does not count them. */
  late: z.number().optional(),
  /** Seconds since its seal. An older plugin does not send it. */
  sealedFor: z.number().optional(),
  /** Seconds for which it has been sealed with no ordinary request in flight. An older plugin does not send it. */
  idleFor: z.number().optional(),
  /** Present once an agent has asked for it. An older plugin does not send it. */
  word: word.optional(),
  /** Only in a list of all entries. An older plugin does not send it. */
  successors: z.record(z.string(), z.array(z.string())).optional(),
  /** The release of agents that put it last. Only in a list of all entries. */
  by: z.string().optional()
})
/** Optional parts of this API that the plugin supports. An older plugin sends none. */
const features = z.array(z.string()).default([])
const answer = z.looseObject({
  instance: z.string(),
  fit: z.boolean(),
  /** When it was counted, in seconds since the epoch by the gateway's clock. An older plugin does not send it. */
  now: z.number().optional(),
  features,
  entries: z.array(told)
})
export const polled = answer.extend({ unknown: z.array(z.string()) })
const refused = z.looseObject({ uid: z.string(), error: z.unknown() })
/** 507: some entries were stored; each of the others has its error. */
export const full = answer.extend({
  entries: z.array(z.union([told, refused])),
  error_msg: z.string().optional()
})
export const removed = z.looseObject({ instance: z.string(), removed: z.number() })
const worker = z.looseObject({
  id: z.number().nullish(),
  pid: z.number(),
  fit: z.boolean(),
  /** The highest configuration revision that the worker applied: overall, and by kind of object. An older plugin reports no kinds. */
  revision: z.number().nullish(),
  revisions: z.record(z.string(), z.number()).optional(),
  /** When one of them last changed (seconds since the epoch). */
  applied: z.number().nullish(),
  /** It exits after a reload: it only finishes its requests, and applies no new configuration. */
  exiting: z.boolean().nullish(),
  /** `covered`, or why its stream subsystem does not cover L4. Absent: that subsystem takes no part. An older plugin does not send it. */
  l4: z.string().optional()
})
/** Long-lived requests to one address, by kind; `oldest`: the age of the oldest one, in s. */
const longLived = z.looseObject({
  ip: z.string(),
  port: z.number(),
  upgraded: z.number(),
  sse: z.number(),
  streams: z.number(),
  oldest: z.number()
})
export const gatewayState = z.looseObject({
  instance: z.string(),
  plugin: z.string(),
  /** Null if the plugin could not detect it. */
  apisix: z.string().nullish(),
  fit: z.boolean(),
  unfit: z.array(z.string()),
  now: z.number().optional(),
  features,
  /** Only entries that got a request in spite of their seal; an older plugin reports all. */
  entries: z.array(told).optional(),
  /** Totals of all entries; the generation goes up with each change. An older plugin does not send it. */
  held: z.looseObject({ entries: z.number(), generation: z.number(), late: z.number() }).optional(),
  workers: z.array(worker),
  counts: z.record(z.string(), z.number()),
  /** Only if it was asked for. An older plugin does not send it. */
  long: z.array(longLived).optional()
})
export type PolledAnswer = z.infer<typeof polled>
