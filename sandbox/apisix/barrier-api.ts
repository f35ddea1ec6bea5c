import { createHash, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { errorMessage, json, type Answer } from './answer.ts'
import { byWorker, serveApi, type Api, type Ask } from './api-server.ts'
import { parseEntries, parseQuestion, parseRemoval, type PutEntry } from './barrier-input.ts'
import type { Barrier } from './barrier.ts'
import { ENTRY_BYTES, type Successors } from './deny-list.ts'
import { APPLIED } from './resources.ts'
import type { Worker } from './worker.ts'

interface BarrierApiOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly token: string
  readonly barrier: Barrier
  /** The living workers. */
  readonly workers: () => readonly Worker[]
  /** Whether this is an old worker after a reload, which only finishes its requests. */
  readonly exiting: (pid: number) => boolean
  /** Picks the worker of a new connection. That worker then handles all its requests. */
  readonly accept: (socket: Socket) => Worker
  readonly readiness: () => Readiness
}

/** Whether requests may be sent to this gateway yet. `why`: the reason if not, or the error while fetching the entries. */
export interface Readiness {
  readonly ready: boolean
  readonly why: string
}

const MAX_BODY = 1024 * 1024

/** The Barrier API as docs/barrier-api.md describes it. */
export const serveBarrierApi = (options: BarrierApiOptions): Promise<Api> =>
  serveApi({
    host: options.host,
    port: options.port,
    maxBody: MAX_BODY,
    tooLong: errorMessage(413, `the body is longer than ${MAX_BODY} bytes: send fewer entries at once`),
    ...byWorker(options.accept, async (worker, ask) => {
      const answer = await answerBarrier(options, ask)
      await worker.turn()
      return answer
    })
  })

type Handler = (options: BarrierApiOptions, ask: Ask) => Answer | Promise<Answer>

const PATHS: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  entries: { PUT: putEntries, DELETE: deleteEntries },
  inflight: { POST: inflight },
  state: { GET: state },
  ready: { GET: ready }
}

const answerBarrier: Handler = (options, ask) => {
  const [, version, name = ''] = /^\/v(\d+)\/barrier\/(.+)$/.exec(ask.path) ?? []
  const { wire } = options.barrier
  const methods = PATHS[name]
  if (name !== 'ready' && !authorized(ask.headers.authorization, options.token))
    return errorMessage(401, 'missing or wrong bearer token: give the agent the token of this gateway')
  if (name !== 'ready' && version !== undefined && Number(version) !== wire) {
    const older = Number(version) > wire ? 'the plugin of this gateway' : 'the agents'
    const error_msg = `agent and plugin have different wire versions (${version} and ${wire}): upgrade ${older}`
    return json(409, { error_msg, wire })
  }
  if (!methods) return errorMessage(404, `no such path: ${ask.path}`)
  const handler = methods[ask.method]
  if (!handler)
    return errorMessage(405, `${ask.path} takes ${Object.keys(methods).join(', ')}, not ${ask.method}`)
  return handler(options, ask)
}

/** Whether the header has the token. It hashes both first, so that the time of the comparison reveals nothing, not even the length. */
const authorized = (header: string | undefined, token: string): boolean => {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`))
}

const fitness = ({ barrier, workers }: BarrierApiOptions): string[] => [
  ...new Set([...barrier.doubts, ...workers().flatMap(({ pid }) => barrier.unfit(pid))])
]

/** The entry to store first: an entry with `sealIf` stays draining until that condition is checked. */
const asDraining = (entry: PutEntry): PutEntry =>
  entry.sealIf === undefined ? entry : { ...entry, state: 'draining' }

/** Seals each entry whose word still has the tag `sealIf`. No other code runs between the check and the seal. */
function sealIfSaid({ entries, words }: Barrier, list: readonly PutEntry[]): void {
  for (const entry of list) {
    const stored = entries.find(entry)
    const word = stored && entry.sealIf !== undefined ? words?.of(stored) : undefined
    if (word?.tag !== undefined && word.tag === entry.sealIf) entries.put(entry)
  }
}

async function putEntries(options: BarrierApiOptions, ask: Ask): Promise<Answer> {
  const { barrier } = options
  const parsed = parseEntries(ask.body)
  if (!parsed.ok) return errorMessage(400, parsed.problem)
  // All entries are written before the first count is read, so the reported counts are later than the entries.
  const stored = parsed.value.map(entry => barrier.entries.put(asDraining(entry)))
  const conditional = parsed.value.filter(({ sealIf }, index) => sealIf !== undefined && stored[index])
  barrier.words?.want()
  if (conditional.length > 0 || ask.query.get('words') === 'true') {
    await barrier.words?.hear(stored.filter(entry => entry !== undefined))
    sealIfSaid(barrier, conditional)
  }
  const isOutdated = parsed.value.map(entry => barrier.entries.isOutdated(entry))
  const isStored = (index: number) => stored[index] !== undefined || isOutdated[index] === true
  const entries = parsed.value.map(({ uid, ip, port }, index) => {
    const entry = stored[index] && barrier.entries.find({ uid, ip, port })
    if (entry) return barrier.told(entry)
    const error = isOutdated[index]
      ? 'an agent that knows more has removed it'
      : 'not stored: dictionary full'
    return { uid, ip, port, error: stored[index] ? 'removed by another request' : error }
  })
  const body = {
    wire: barrier.wire,
    instance: barrier.instance,
    fit: fitness(options).length === 0,
    now: barrier.now(),
    entries
  }
  const lacking = stored.filter((_, index) => !isStored(index)).length
  if (lacking === 0) return json(200, body)
  const needed = (barrier.entries.size + lacking) * ENTRY_BYTES
  return json(507, {
    ...body,
    error_msg: `the dictionary is full: enlarge it from ${barrier.entries.capacity} to at least ${needed} bytes`
  })
}

function deleteEntries({ barrier }: BarrierApiOptions, ask: Ask): Answer {
  const parsed = parseRemoval(ask.body)
  if (!parsed.ok) return errorMessage(400, parsed.problem)
  return json(200, {
    wire: barrier.wire,
    instance: barrier.instance,
    removed: barrier.entries.remove(new Set(parsed.value.uids), parsed.value.asOf)
  })
}

async function inflight(options: BarrierApiOptions, ask: Ask): Promise<Answer> {
  const { barrier } = options
  const parsed = parseQuestion(ask.body)
  if (!parsed.ok) return errorMessage(400, parsed.problem)
  const { uids, wait, until } = parsed.value
  const entriesNow = () => uids.flatMap(uid => barrier.entries.ofUid(uid)).map(entry => barrier.told(entry))
  await barrier.idle(uids, until, wait, ask.signal)
  const entries = entriesNow()
  return json(200, {
    wire: barrier.wire,
    instance: barrier.instance,
    fit: fitness(options).length === 0,
    now: barrier.now(),
    entries,
    unknown: uids.filter(uid => barrier.entries.ofUid(uid).length === 0)
  })
}

function state(options: BarrierApiOptions, ask: Ask): Answer {
  const { barrier, workers } = options
  const unfit = fitness(options)
  const all = barrier.entries.all()
  const asked = ask.query.get('entries') === 'late' ? all.filter(({ late }) => late > 0) : all
  return json(200, {
    wire: barrier.wire,
    instance: barrier.instance,
    plugin: '0.2.0',
    apisix: '3.18.0',
    fit: unfit.length === 0,
    unfit,
    now: barrier.now(),
    workers: workers().map(worker => ({
      id: worker.id,
      pid: worker.pid,
      fit: barrier.unfit(worker.pid).length === 0,
      unfit: barrier.unfit(worker.pid),
      seen: worker.seen,
      revision: worker.config.revision,
      // one watch delivers all kinds of objects, so all have the same revision
      revisions: Object.fromEntries(APPLIED.map(kind => [kind, worker.config.revision])),
      applied: worker.config.appliedAt,
      exiting: options.exiting(worker.pid),
      ...(barrier.l4 && { l4: 'covered' })
    })),
    held: { entries: all.length, generation: barrier.entries.generation, late: barrier.late },
    entries: asked.map(entry => ({
      ...barrier.told(entry),
      ...(ask.query.get('words') === 'false' && { word: undefined }),
      ...(ask.query.get('entries') !== 'late' && entry.successors && { successors: asPut(entry.successors) })
    })),
    counts: { ...barrier.counts },
    ...(ask.query.get('long') === 'true' && {
      long: barrier.inflight.longLived().map(one => ({ ...one, sse: 0, streams: 0, oldest: 0 }))
    }),
    dictionary: { capacity: barrier.entries.capacity, free: barrier.entries.free }
  })
}

const asPut = (successors: Successors) =>
  Object.fromEntries(
    Object.entries(successors).map(([port, to]) => [
      port,
      to.map(({ ip, port }) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`)
    ])
  )

function ready({ readiness }: BarrierApiOptions): Answer {
  const { ready, why } = readiness()
  return json(ready ? 200 : 503, { ready, ...(why ? { why } : {}) })
}
