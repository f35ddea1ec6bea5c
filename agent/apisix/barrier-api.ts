import { z } from 'zod'

import { nodeKey } from '../drain/facts.ts'
import { CodedError, ERRORS } from '../base/errors.ts'
import { createHttp } from './http.ts'
import type { Call } from './lean.ts'
import type { TlsOptions } from './tls-agent.ts'

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
  tag: z.string().optional()
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
const polled = answer.extend({ unknown: z.array(z.string()) })
const refused = z.looseObject({ uid: z.string(), error: z.unknown() })
/** 507: some entries were stored; each of the others has its error. */
const full = answer.extend({ entries: z.array(z.union([told, refused])), error_msg: z.string().optional() })
const removed = z.looseObject({ instance: z.string(), removed: z.number() })
const worker = z.looseObject({
  id: z.number().nullish(),
  pid: z.number(),
  fit: z.boolean(),
  /** The highest configuration revision it has applied, over all kinds of object, and by kind. An older plugin reports no kinds. */
  revision: z.number().nullish(),
  revisions: z.record(z.string(), z.number()).optional(),
  /** When one of them last changed (seconds since the epoch). */
  applied: z.number().nullish(),
  /** It exits after a reload: it only finishes its requests, and applies no new configuration. */
  exiting: z.boolean().nullish()
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
const gatewayState = z.looseObject({
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

interface PutAnswer extends BarrierAnswer {
  /** Not stored, because the dictionary is full. */
  readonly refused: ReadonlySet<string>
  readonly why: string
}

export interface BarrierOptions extends TlsOptions {
  readonly port: number
  readonly scheme: 'http' | 'https'
  /** Called at each request, because tokens are rotated. */
  readonly token: () => string
  readonly timeoutMs: number
}

/** The barrier's API on one gateway. Every call rejects with CodedError. */
export interface BarrierApi {
  /** Sets, renews or seals entries, in batches of at most 1000. Each state is read after its entry was written. */
  put(entries: readonly BarrierEntry[], signal?: AbortSignal): Promise<PutAnswer>
  remove(uids: readonly string[], signal?: AbortSignal): Promise<{ readonly instance: string }>
  /**
   * Answers as soon as one of the uids has no request in flight, and after `waitSeconds` (0 to 30) at the latest. Long-lived
   * connections are reported, but the call does not wait for them.
   */
  inflight(
    uids: readonly string[],
    waitSeconds: number,
    signal?: AbortSignal
  ): Promise<BarrierAnswer & { readonly unknown: readonly string[] }>
  /** On a connection of its own, so that another gateway at this address is noticed sooner or later. */
  state(signal?: AbortSignal): Promise<BarrierGateway>
  /** All entries, of all agents. The cost for the gateway grows with their number. */
  entries(signal?: AbortSignal): Promise<readonly BarrierState[]>
  /** The addresses with long-lived requests, of pods that end and of others. Empty for an older plugin. */
  longLived(signal?: AbortSignal): Promise<readonly LongLivedAt[]>
}

export interface BarrierClient {
  /** `host`: a gateway's IP, without brackets. */
  at(host: string): BarrierApi
  close(): void
}

/** The most entries in one request, and the most uids (docs/barrier-api.md). */
const BATCH = 1000

/** Returns at least one batch, so that a gateway is asked even about no uids. */
function batches(uids: readonly string[]): string[][] {
  const all: string[][] = [uids.slice(0, BATCH)]
  for (let from = BATCH; from < uids.length; from += BATCH) all.push(uids.slice(from, from + BATCH))
  return all
}

/** The most addresses in one body of at most 1 MiB: an address in JSON has at most 50 bytes, the rest of an entry 400. */
const MOST_ADDRESSES = 18_000
const ADDRESSES_AN_ENTRY = 8

function putBatches(entries: readonly BarrierEntry[]): BarrierEntry[][] {
  const all: BarrierEntry[][] = []
  let room = 0
  for (const entry of entries) {
    const addresses = Object.values(entry.successors ?? {}).reduce((sum, { length }) => sum + length, 0)
    const needed = addresses + ADDRESSES_AN_ENTRY
    const last = all.at(-1)
    if (last && last.length < BATCH && needed <= room) last.push(entry)
    else {
      all.push([entry])
      room = MOST_ADDRESSES
    }
    room -= needed
  }
  return all
}

type PolledAnswer = z.infer<typeof polled>

/** @throws CodedError if the gateway restarted between two answers */
function merged(answers: readonly PolledAnswer[]): PolledAnswer {
  const [first, ...rest] = answers as [PolledAnswer, ...PolledAnswer[]]
  if (rest.some(({ instance }) => instance !== first.instance)) {
    throw new CodedError('BARRIER_UNAVAILABLE', 'the gateway restarted between two batches')
  }
  return {
    instance: first.instance,
    fit: answers.every(({ fit }) => fit),
    now: answers.at(-1)?.now,
    features: first.features,
    entries: answers.flatMap(({ entries }) => entries),
    unknown: answers.flatMap(({ unknown }) => unknown)
  }
}

export function createBarrierClient(options: BarrierOptions): BarrierClient {
  const { ca, serverName } = options
  const http = createHttp({ api: 'BARRIER', keepAlive: true, ca, serverName, maxBytes: 16 * 1024 * 1024 })

  const at = (host: string): BarrierApi => {
    const root = `${options.scheme}://${nodeKey(host, options.port)}/v1/barrier`
    const ask = async <T>(
      schema: z.ZodType<T>,
      call: Pick<Call, 'method' | 'body' | 'signal' | 'alsoFine' | 'fresh'>,
      path: string,
      longerMs = 0
    ): Promise<T> => {
      const url = `${root}/${path}`
      const headers = { Authorization: `Bearer ${options.token()}` }
      const body = await http.json({ ...call, url, headers, timeoutMs: options.timeoutMs + longerMs })
      const parsed = schema.safeParse(body)
      if (parsed.success) return parsed.data
      throw new CodedError('BARRIER_GARBLED', `${call.method} ${url}`, { cause: parsed.error })
    }

    const putBatch = async (entries: readonly BarrierEntry[], signal?: AbortSignal): Promise<PutAnswer> => {
      // Entries that are sealed unconditionally need no word of the workers.
      const path = entries.some(({ state }) => state === 'draining') ? 'entries?words=true' : 'entries'
      const reply = await ask(full, { method: 'PUT', body: { entries }, signal, alsoFine: 507 }, path)
      const stored = reply.entries.filter((e): e is BarrierState => 'state' in e)
      const refused = new Set(reply.entries.filter(e => !('state' in e)).map(e => e.uid))
      const why = refused.size === 0 ? '' : `${reply.error_msg ?? ''}: ${ERRORS.BARRIER_FULL}`
      const { instance, fit, now, features } = reply
      return { instance, fit, now, features, entries: stored, refused, why }
    }

    return {
      async put(entries, signal) {
        const [first = [], ...rest] = putBatches(entries)
        let all = await putBatch(first, signal)
        for (const batch of rest) {
          const next = await putBatch(batch, signal)
          if (next.instance !== all.instance)
            throw new CodedError(
              'BARRIER_UNAVAILABLE',
              `PUT ${root}/entries: the gateway restarted between two batches`
            )
          all = {
            instance: next.instance,
            fit: all.fit && next.fit,
            now: next.now,
            features: next.features,
            entries: [...all.entries, ...next.entries],
            refused: all.refused.union(next.refused),
            why: next.why || all.why
          }
        }
        return all
      },
      async remove(uids, signal) {
        let last = { instance: '' }
        for (const batch of batches(uids)) {
          last = await ask(removed, { method: 'DELETE', body: { uids: batch }, signal }, 'entries')
        }
        return last
      },
      async inflight(uids, wait, signal) {
        const all = batches(uids)
        const answers: PolledAnswer[] = []
        for (const [i, batch] of all.entries()) {
          // A long poll is one batch (barrier-lane.ts). A plain read may be several batches, and does not wait.
          const seconds = i === all.length - 1 ? wait : 0
          const body = { uids: batch, wait: seconds, until: 'requests' }
          answers.push(await ask(polled, { method: 'POST', body, signal }, 'inflight', seconds * 1000))
        }
        return merged(answers)
      },
      // It is polled often, so its cost to the gateway must not grow with the number of entries.
      state: signal => ask(gatewayState, { method: 'GET', signal, fresh: true }, 'state?entries=late'),
      async entries(signal) {
        // The connection is not kept: it would stay bound to one worker, and if that froze, a later call would wait for it.
        const { entries = [] } = await ask(gatewayState, { method: 'GET', signal, fresh: true }, 'state')
        return entries
      },
      async longLived(signal) {
        const { long = [] } = await ask(
          gatewayState,
          { method: 'GET', signal, fresh: true },
          'state?entries=late&long=true'
        )
        return long
      }
    }
  }
  return { at, close: () => http.close() }
}
