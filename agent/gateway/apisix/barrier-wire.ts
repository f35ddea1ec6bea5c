import { z } from 'zod'

import { isRecord } from '../../base/read.ts'

/**
 * The version of the protocol between agents and gateways, which is not that of a release. It goes up with every change that the other
 * side could misunderstand. A gateway refuses requests of another version, so it gives no evidence (docs/decisions/0077).
 */
export const WIRE = 1

/** One address of one pod in a gateway's deny-list (docs/barrier-api.md). */
export interface BarrierEntry {
  readonly uid: string
  /** The address, without brackets. */
  readonly ip: string
  readonly port?: number
  readonly state: 'draining' | 'sealed'
  /** Seconds, 1 to 3600. */
  readonly ttl: number
  /** With `sealed`: the gateway seals only if the workers' word still has this tag. Otherwise the entry stays draining. */
  readonly sealIf?: string
  /** The successors' addresses (`address:port`), by port of the ending pod. */
  readonly successors?: Readonly<Record<string, readonly string[]>>
  /** What the pod's hook was answered, for other agents to show, and the age of the answer in s. The first one stays. */
  readonly answer?: string
  readonly answeredFor?: number
  /** Of a pod that may stay: which containers stop (`stopText`), and the age of the latest hook of them in s. */
  readonly stop?: string
  readonly stoppedFor?: number
  /** Questions: which other addresses, names and ports lead to the pod (`Found`). They are never denied. */
  readonly ways?: readonly string[]
}

/** A list that is checked up to its first wrong item. z.array reports every one: an answer full of them stopped the loop for 3 s. */
export const arrayOf = <T>(item: z.ZodType<T>) =>
  z.custom<unknown[]>(Array.isArray).transform((all, context): T[] => {
    const read: T[] = []
    for (const [at, one] of all.entries()) {
      const { error, data } = item.safeParse(one)
      const [issue] = error?.issues ?? []
      if (issue) return (context.addIssue({ ...issue, path: [at, ...issue.path] }), z.NEVER)
      read.push(data as T)
    }
    return read
  })
const areStrings = (all: unknown): boolean => Array.isArray(all) && all.every(one => typeof one === 'string')
const strings = z.custom<string[]>(areStrings, 'not a list of strings')
const stringsByKey = z.custom<Record<string, string[]>>(
  all => isRecord(all) && Object.values(all).every(areStrings)
)
const numbersByKey = z.custom<Record<string, number>>(
  all => isRecord(all) && Object.keys(all).length <= 64 && Object.values(all).every(Number.isFinite)
)

/** An entry as the gateway reports it. */
export type BarrierState = z.infer<typeof entryState>
export type WorkersWord = z.infer<typeof word>
export type BarrierAnswer = z.infer<typeof answer>
export type BarrierGateway = z.infer<typeof gatewayState>

/** The workers' reports on an entry, for one gateway. The word is complete if `said` equals `asked`. Only a complete word has a tag. */
const word = z.looseObject({
  said: z.number(),
  asked: z.number(),
  /** How many places would use the address: the highest count of any worker, as in `hidden`. */
  places: z.number(),
  /** Names of places in which some worker has no other choice that is not denied. */
  sole: strings,
  /** Names of places in which only successors are left. */
  succeeded: strings,
  /** How many places a worker cannot inspect. */
  hidden: z.number(),
  /** The other choices of all other places, each as `address:port`; `more` of them are left out. */
  others: arrayOf(z.looseObject({ places: z.number(), nodes: strings, more: z.number() })),
  /** The number of places whose other choices are left out of `others`. */
  cut: z.number(),
  /** How many questions every worker has looked at, and the nodes that these found; `more` of them are left out. */
  ways: z.looseObject({
    asked: z.number(),
    found: arrayOf(z.looseObject({ way: z.string(), place: z.string(), node: z.string() })),
    more: z.number()
  }),
  tag: z.string().optional(),
  /** `false` if L4 is on and some worker does not seal and count its sessions. */
  l4: z.boolean().optional()
})
const entryState = z.looseObject({
  uid: z.string(),
  ip: z.string(),
  port: z.number().optional(),
  state: z.enum(['draining', 'sealed']),
  ttl: z.number(),
  // The kinds (`upgraded`, `sse`, `streams`) are present if `long` is above 0.
  inflight: z.looseObject({
    requests: z.number(),
    long: z.number(),
    upgraded: z.number().optional(),
    sse: z.number().optional(),
    streams: z.number().optional(),
    /** Age of the oldest long-lived request, in s. */
    oldest: z.number().optional()
  }),
  bypasses: z.number(),
  /** Requests that went to the address although the entry was sealed. */
  late: z.number(),
  /** Seconds since the seal. */
  sealedFor: z.number().optional(),
  /** Seconds for which the entry has been sealed with no ordinary request in flight. */
  idleFor: z.number().optional(),
  /** Present once an agent has asked for the workers' word. */
  word: word.optional(),
  /** Only in a list of all entries. */
  successors: stringsByKey.optional(),
  answer: z.string().optional(),
  answeredFor: z.number().optional(),
  stop: z.string().optional(),
  stoppedFor: z.number().optional()
})
const wire = z.literal(WIRE)
const answer = z.looseObject({
  wire,
  instance: z.string(),
  fit: z.boolean(),
  entries: arrayOf(entryState)
})
export const polled = answer.extend({ unknown: strings })
const refused = z.looseObject({ uid: z.string(), error: z.unknown() })
/** The answer with status 507: some entries were stored; each entry that was not stored has its error. */
export const full = answer.extend({
  entries: arrayOf(z.union([entryState, refused])),
  error_msg: z.string().optional()
})
export const removed = z.looseObject({ wire, instance: z.string(), removed: z.number() })
const worker = z.looseObject({
  id: z.number().nullish(),
  pid: z.number(),
  fit: z.boolean(),
  /** The highest configuration revision that the worker applied: overall, and by kind of object. */
  revision: z.number().nullish(),
  revisions: numbersByKey,
  /** When one of these revisions last changed (seconds since the epoch). */
  applied: z.number().nullish(),
  /** The worker exits after a reload: it only finishes its requests, and applies no new configuration. */
  exiting: z.boolean().nullish(),
  /** `covered`, or why the stream subsystem does not cover L4. Absent if L4 is off. */
  l4: z.string().optional()
})
export const gatewayState = z.looseObject({
  wire,
  instance: z.string(),
  plugin: z.string(),
  /** Null if the plugin could not detect it. */
  apisix: z.string().nullish(),
  fit: z.boolean(),
  unfit: strings,
  /** When it answered, in seconds since the epoch by its clock. */
  now: z.number(),
  /** With `entries=late`: only entries that got a request in spite of their seal. */
  entries: arrayOf(entryState),
  /** Totals of all entries. Each change increases the generation. */
  held: z.looseObject({ entries: z.number(), generation: z.number(), late: z.number() }),
  workers: arrayOf(worker).refine(({ length }) => length <= 1024),
  counts: z.looseObject({
    moved: z.number(),
    succeeded: z.number(),
    refused: z.number(),
    bypasses: z.number(),
    errors: z.number()
  })
})
export type PolledAnswer = z.infer<typeof polled>
