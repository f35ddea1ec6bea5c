import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { Kubernetes } from '../../../../sandbox/kubernetes/server.ts'
import { until as waitUntil } from '../../../build/apisix.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: Json
}

/** JSON of any shape, since tests read only parts of it. */
export interface Json {
  readonly [field: string]: Json
}

export interface Event {
  readonly type: string
  readonly object: Json
}

export interface Watch {
  readonly status: number
  readonly events: readonly Event[]
  readonly stream: ClientHttp2Stream
  /** Lines that are not JSON. */
  readonly broken: readonly string[]
  /** Number of DATA chunks. */
  chunks(): number
  /** Waits until there are this many events, up to a time limit. */
  count(n: number): Promise<readonly Event[]>
  readonly ended: Promise<void>
}

export interface Client {
  readonly session: ClientHttp2Session
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  watch(path: string, headers?: Record<string, string>): Promise<Watch>
  close(): void
}

/** Rejects if the stream ends without an answer, for any reason. */
const responseOf = (stream: ClientHttp2Stream) =>
  new Promise<Record<string, unknown>>((resolve, reject) => {
    stream.once('response', headers => resolve({ ...headers }))
    stream.once('error', reject)
    stream.once('close', () => reject(new Error(`closed without an answer (code ${stream.rstCode})`)))
  })

/** Calls the `until` of the other tests, with the arguments in the other order. */
export const until = (holds: () => boolean, what: string): Promise<void> => waitUntil(what, holds)

/** Connects a plain HTTP/2 client to the stand-in. The client does not retry and does not hide errors. */
export function connectTo(kubernetes: Kubernetes, token = kubernetes.token): Client {
  const session = connect(kubernetes.url, kubernetes.ca === undefined ? {} : { ca: kubernetes.ca })
  session.on('error', () => {})
  const open = (method: string, path: string, headers: Record<string, string> = {}, endStream = true) =>
    session.request(
      { ':method': method, ':path': path, authorization: `Bearer ${token}`, ...headers },
      { endStream }
    )

  return {
    session,
    async ask(method, path, body, headers = {}) {
      const json = body === undefined ? {} : { 'content-type': 'application/json' }
      const stream = open(method, path, { ...json, ...headers }, body === undefined)
      if (body !== undefined) stream.end(JSON.stringify(body))
      const answered = await responseOf(stream)
      let text = ''
      stream.setEncoding('utf8')
      for await (const chunk of stream as AsyncIterable<string>) text += chunk
      const parsed =
        answered['content-type'] === 'application/json'
          ? (JSON.parse(text) as Json)
          : ({ text } as unknown as Json)
      return { status: Number(answered[':status']), headers: answered, body: parsed }
    },
    async watch(path, headers) {
      const stream = open('GET', path, headers)
      stream.on('error', () => {})
      const answered = await responseOf(stream)
      const events: Event[] = []
      const broken: string[] = []
      let chunks = 0
      let rest = ''
      stream.setEncoding('utf8')
      stream.on('data', (chunk: string) => {
        chunks += 1
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines)
          try {
            events.push(JSON.parse(line) as Event)
          } catch {
            broken.push(line)
          }
      })
      const ended = new Promise<void>(resolve => void stream.on('close', () => resolve()))
      return {
        status: Number(answered[':status']),
        events,
        stream,
        broken,
        chunks: () => chunks,
        ended,
        async count(n) {
          await until(
            () => events.length >= n,
            `${n} events, got ${JSON.stringify(events.map(({ type }) => type))}`
          )
          return events
        }
      }
    },
    close: () => session.destroy()
  }
}

/** Returns a leaf as text. */
export const text = (leaf: Json | undefined): string =>
  typeof leaf === 'string' ? leaf : JSON.stringify(leaf)

export const names = (list: Json): string[] =>
  (list.items as unknown as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name)

/** Returns a draft of a pod that has a host. Only a pod with a host gets a grace at its deletion. */
export const podDraft = (name: string, labels: Record<string, string> = {}, namespace = 'default') => ({
  metadata: { name, namespace, labels },
  spec: { nodeName: 'host-1', containers: [{ name: 'app' }] }
})
