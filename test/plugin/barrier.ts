/** A plain client of the Barrier API: what a test needs to send anything at all, right or wrong. */

export interface EntryIn {
  uid: string
  ip: string
  port?: number
  state?: 'draining' | 'sealed'
  ttl?: number
  sealIf?: string
}

export interface EntryOut {
  uid: string
  ip: string
  port?: number
  state: 'draining' | 'sealed'
  ttl: number
  inflight: { requests: number; long: number }
  bypasses: number
  late: number
  word: Word
  error?: string
}

/** What the workers say of an entry. */
export interface Word {
  said: number
  asked: number
  places: number
  sole: string[]
  hidden: number
  others: { places: number; nodes: string[]; more: number }[]
  cut: number
  tag?: string
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
}

export interface StateOut extends Told {
  plugin: string
  apisix: string
  unfit: string[]
  now: number
  workers: WorkerOut[]
  held: { entries: number; generation: number; late: number }
  counts: { moved: number; bypasses: number; refused: number; errors: number }
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
  /** Puts ask for the workers' words. */
  words = false

  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  /** Sends what it is given; a string goes out as it is. */
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

  async inflight(uids: string[], wait = 0, until: 'requests' | 'all' = 'all'): Promise<Told> {
    return await this.#ok('POST', '/v1/barrier/inflight', { uids, wait, until })
  }

  async state(): Promise<StateOut> {
    return await this.#ok('GET', '/v1/barrier/state')
  }

  /** The state with those entries only to which a request was sent in spite of their seal. */
  async summary(): Promise<StateOut> {
    return await this.#ok('GET', '/v1/barrier/state?entries=late')
  }
}
