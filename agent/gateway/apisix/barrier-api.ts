import type { z } from 'zod'
import { CodedError, ERRORS } from '../../base/errors.ts'
import {
  type BarrierAnswer,
  type BarrierEntry,
  full,
  gatewayState,
  polled,
  removed,
  WIRE,
  type BarrierGateway,
  type BarrierState,
  type PolledAnswer
} from './barrier-wire.ts'
import { nodeKey } from '../../rules/drain/facts.ts'
import { createHttp, type Call, type TlsOptions } from './http.ts'

/** The most entries in one request, and the most uids (docs/barrier-api.md). */
const BATCH = 1000

/** Splits uids into batches. Returns at least one batch, so that a gateway is asked even if there are no uids. */
function batches(uids: readonly string[]): string[][] {
  const all: string[][] = [uids.slice(0, BATCH)]
  for (let from = BATCH; from < uids.length; from += BATCH) all.push(uids.slice(from, from + BATCH))
  return all
}

/** The most addresses in one body of at most 1 MiB. In JSON an address has at most 50 bytes; the rest of an entry counts as 8 addresses. */
const MOST_ADDRESSES = 18_000
const ADDRESSES_AN_ENTRY = 8

/** Splits entries into requests of the size that the plugin accepts. */
export function putBatches(entries: readonly BarrierEntry[]): BarrierEntry[][] {
  const all: BarrierEntry[][] = []
  let room = 0
  for (const entry of entries) {
    const addresses = Object.values(entry.successors ?? {}).reduce((sum, { length }) => sum + length, 0)
    const text = (entry.answer ?? '').length + (entry.ways ?? []).join('","').length
    const needed = addresses + ADDRESSES_AN_ENTRY + Math.ceil(text / 16)
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

/** One answer made from the answers to several batches. @throws CodedError if the gateway restarted between two answers */
function merged(answers: readonly BarrierAnswer[]): BarrierAnswer {
  const [{ wire, instance }, ...rest] = answers as [BarrierAnswer, ...BarrierAnswer[]]
  if (rest.some(answer => answer.instance !== instance))
    throw new CodedError('BARRIER_UNAVAILABLE', 'the gateway restarted between two batches')
  const fit = answers.every(answer => answer.fit)
  return { wire, instance, fit, entries: answers.flatMap(({ entries }) => entries) }
}

interface PutAnswer extends BarrierAnswer {
  /** The uids whose entries were not stored: the dictionary is full, or another agent knows more and has removed them. */
  readonly refused: ReadonlySet<string>
  readonly why: string
}

interface Removal {
  readonly uids: readonly string[]
  readonly asOf?: AsOf
  /** By uid: only the entries of this stop of containers are removed. Absent: all of this pod. */
  readonly stops?: Readonly<Record<string, string | undefined>>
}

export interface BarrierOptions extends TlsOptions {
  readonly port: number
  readonly scheme: 'http' | 'https'
  /** Called at each request, because tokens are rotated. */
  readonly token: () => string
  readonly timeoutMs: number
}

/**
 * The revision of the API server up to which the caller knows the pods. For two minutes the gateway does not let an agent that knows less put
 * an entry again, or name successors again.
 */
export type AsOf = number | undefined

/** The barrier's API on one gateway. A call that fails rejects with a CodedError. */
export interface BarrierApi {
  /** Sets, renews or seals entries, in batches of at most 1000. Each state is read after its entry was written. */
  put(entries: readonly BarrierEntry[], asOf?: AsOf, signal?: AbortSignal): Promise<PutAnswer>
  remove(which: Removal, signal?: AbortSignal): Promise<{ readonly instance: string }>
  /**
   * Answers as soon as one of the uids has no request in flight, and after `waitSeconds` (0 to 30) at the latest. Long-lived
   * connections are reported, but the call does not wait for them.
   */
  inflight(
    uids: readonly string[],
    waitSeconds: number,
    signal?: AbortSignal
  ): Promise<BarrierAnswer & { readonly unknown: readonly string[] }>
  /** The gateway's report on itself. Each call opens a new connection, to notice another gateway at this address sooner or later. */
  state(signal?: AbortSignal): Promise<BarrierGateway>
  /** All entries, of all agents, without the workers' words. The cost for the gateway grows with their number. */
  entries(signal?: AbortSignal): Promise<readonly BarrierState[]>
}

export interface BarrierClient {
  /** `host`: a gateway's IP, without brackets. */
  at(host: string): BarrierApi
  close(): void
}

/** The largest report of a gateway on itself, in bytes. It has a line for each worker, and none for an entry in use. */
const LONGEST_STATE = 256 * 1024

const OUTDATED = 'another agent knows more about this pod, and has removed its entry'

export function createBarrierClient(options: BarrierOptions): BarrierClient {
  const { ca, serverName } = options
  const http = createHttp({ api: 'BARRIER', keepAlive: true, ca, serverName, maxBytes: 8 * 2 ** 20 })

  const at = (host: string): BarrierApi => {
    const root = `${options.scheme}://${nodeKey(host, options.port)}/v${WIRE}/barrier`
    const ask = async <T>(
      schema: z.ZodType<T>,
      call: Pick<Call, 'method' | 'body' | 'signal' | 'alsoFine' | 'fresh' | 'maxBytes'>,
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

    // The connection is not kept, because it is bound to one worker: if that worker froze, a later call would wait for it.
    const read = (path: string, signal: AbortSignal | undefined, maxBytes?: number) =>
      ask(gatewayState, { method: 'GET', signal, fresh: true, maxBytes }, path)

    const putBatch = async (
      entries: readonly BarrierEntry[],
      asOf: AsOf,
      signal?: AbortSignal
    ): Promise<PutAnswer> => {
      // The answer needs the workers' words only if an entry is draining.
      const path = entries.some(({ state }) => state === 'draining') ? 'entries?words=true' : 'entries'
      const reply = await ask(full, { method: 'PUT', body: { entries, asOf }, signal, alsoFine: 507 }, path)
      const stored = reply.entries.filter((e): e is BarrierState => 'state' in e)
      const refused = new Set(reply.entries.filter(e => !('state' in e)).map(e => e.uid))
      const notStored =
        reply.error_msg === undefined ? OUTDATED : `${reply.error_msg}: ${ERRORS.BARRIER_FULL}`
      const why = refused.size === 0 ? '' : notStored
      const { wire, instance, fit } = reply
      return { wire, instance, fit, entries: stored, refused, why }
    }

    return {
      async put(entries, asOf, signal) {
        const answers: PutAnswer[] = []
        for (const batch of putBatches(entries)) answers.push(await putBatch(batch, asOf, signal))
        const refused = answers.reduce((all, { refused }) => all.union(refused), new Set<string>())
        return { ...merged(answers), refused, why: answers.findLast(({ why }) => why !== '')?.why ?? '' }
      },
      async remove({ uids, ...which }, signal) {
        let last = { instance: '' }
        for (const batch of batches(uids)) {
          last = await ask(removed, { method: 'DELETE', body: { uids: batch, ...which }, signal }, 'entries')
        }
        return last
      },
      async inflight(uids, wait, signal) {
        const all = batches(uids)
        const answers: PolledAnswer[] = []
        for (const [i, batch] of all.entries()) {
          // A long poll is one batch (barrier-lane.ts). A plain read may be several batches, and does not wait.
          const seconds = i === all.length - 1 ? wait : 0
          const body = { uids: batch, wait: seconds }
          answers.push(await ask(polled, { method: 'POST', body, signal }, 'inflight', seconds * 1000))
        }
        return { ...merged(answers), unknown: answers.flatMap(({ unknown }) => unknown) }
      },
      // The state is polled often, so its cost for the gateway must not grow with the number of entries.
      state: signal => read('state?entries=late', signal, LONGEST_STATE),
      entries: async signal => (await read('state?words=false', signal)).entries
    }
  }
  return { at, close: () => http.close() }
}
