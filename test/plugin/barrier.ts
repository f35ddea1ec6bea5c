/** A plain client of the Barrier API, which can send valid and invalid requests. */

export interface EntryIn {
  uid: string
  ip: string
  port?: number
  state?: 'draining' | 'sealed'
  ttl?: number
  sealIf?: string
  /** Addresses that take over, by the port of the ending pod. */
  successors?: Record<string, readonly string[]>
  /** What the pod's hook was answered, and how many seconds ago. */
  answer?: string
  answeredFor?: number
  ways?: readonly string[]
}

export interface EntryOut {
  uid: string
  ip: string
  port?: number
  state: 'draining' | 'sealed'
  ttl: number
  inflight: {
    requests: number
    long: number
    upgraded?: number
    sse?: number
    streams?: number
    oldest?: number
  }
  bypasses: number
  late: number
  sealedFor?: number
  idleFor?: number
  word: Word
  /** Only the answer to a read of the state has this field. */
  successors?: Record<string, string[]>
  answer?: string
  answeredFor?: number
  error?: string
}

/** The workers' report on an entry. */
export interface Word {
  said: number
  asked: number
  places: number
  sole: string[]
  succeeded: string[]
  hidden: number
  others: { places: number; nodes: string[]; more: number }[]
  cut: number
  ways: { asked: number; found: { way: string; place: string; node: string }[]; more: number }
  tag?: string
  /** Every worker covers L4. */
  l4?: false
}

/** The word of three workers that have the entry's node in no place. */
export const NOTHING: Word = {
  said: 3,
  asked: 3,
  places: 0,
  sole: [],
  succeeded: [],
  hidden: 0,
  others: [],
  cut: 0,
  ways: { asked: 0, found: [], more: 0 }
}

export interface Told {
  instance: string
  fit: boolean
  entries: EntryOut[]
  unknown?: string[]
  error_msg?: string
}

export interface WorkerOut {
  id: number
  pid: number
  fit: boolean
  unfit: string[]
  seen: number
  revision: number
  revisions: Record<string, number>
  applied: number
  exiting: boolean
  /** `covered`, or why the worker does not cover L4. Absent: its stream subsystem does not take part. */
  l4?: string
}

export interface StateOut extends Told {
  plugin: string
  apisix: string
  unfit: string[]
  now: number
  workers: WorkerOut[]
  held: { entries: number; generation: number; late: number }
  counts: {
    moved: number
    bypasses: number
    refused: number
    errors: number
    succeeded: number
    kept: number
  }
  dictionary: { capacity: number; free: number }
  fetch?: string
}

export interface Answer<T> {
  status: number
  headers: Headers
  body: T
}

const ENTRIES = '/v1/barrier/entries'

export class Barrier {
  readonly #url: string
  readonly #token: string
  /** Whether puts ask for the workers' words. */
  words = false

  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  /** Sends a value as JSON; a string is sent unchanged. */
  async send<T = Told>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = { authorization: `Bearer ${this.#token}` }
  ): Promise<Answer<T>> {
    const answer = await fetch(this.#url + path, {
      method,
      headers: { ...headers, connection: 'close' },
      signal: AbortSignal.timeout(40_000),
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) })
    })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: JSON.parse(text) as T }
  }

  async #ok<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.send<T>(method, path, body)
    if (answer.status !== 200)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async put(...entries: EntryIn[]): Promise<Told> {
    return await this.#ok('PUT', this.words ? `${ENTRIES}?words=true` : ENTRIES, {
      entries: entries.map(e => ({ state: 'draining', ttl: 60, ...e }))
    })
  }

  async remove(...uids: string[]): Promise<{ instance: string; removed: number }> {
    return await this.#ok('DELETE', ENTRIES, { uids })
  }

  async inflight(uids: string[], wait = 0): Promise<Told> {
    return await this.#ok('POST', '/v1/barrier/inflight', { uids, wait })
  }

  async state(): Promise<StateOut> {
    return await this.#ok('GET', '/v1/barrier/state')
  }

  /** Returns the state, with only those entries that got a request in spite of their seal. */
  async summary(): Promise<StateOut> {
    return await this.#ok('GET', '/v1/barrier/state?entries=late')
  }
}
