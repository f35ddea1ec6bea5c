import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Shot } from './mix.ts'
import type { FailureKind } from './options.ts'

export type Outcome =
  | { readonly ok: true; readonly pod: string | undefined }
  | {
      readonly ok: false
      readonly kind: FailureKind
      readonly status: number | undefined
      readonly pod: string | undefined
      readonly detail: string
    }

/** The number of pieces of a slow upload. */
const PIECES = 10

/** Keeps connections to the gateways open, as a browser or a service mesh would. */
export const createAgent = () => new Agent({ keepAlive: true, maxSockets: Infinity, scheduling: 'lifo' })

/**
 * Sends one request and reads its whole answer. Never retries and never rejects. Ends within `timeoutMs`, whatever the
 * server does.
 */
export function send(url: URL, shot: Shot, agent: Agent, timeoutMs: number): Promise<Outcome> {
  return new Promise(resolve => {
    let response: IncomingMessage | undefined
    const seen = () => ({
      status: response?.statusCode,
      pod: response?.headers['x-pod']?.toString()
    })
    const call = request(url, {
      method: shot.method,
      agent: shot.newConnection ? false : agent,
      headers: {
        ...(shot.bodyBytes > 0 && { 'content-length': shot.bodyBytes }),
        ...(shot.newConnection && { connection: 'close' })
      }
    })
    const finish = (outcome: Outcome) => {
      clearTimeout(timer)
      resolve(outcome)
      if (!outcome.ok) call.destroy()
    }
    const fail = (kind: FailureKind, detail: string) => finish({ ok: false, kind, ...seen(), detail })
    const timer = setTimeout(() => fail('timeout', `no whole answer in ${timeoutMs} ms`), timeoutMs)
    call.on('error', error => fail(response ? 'truncated' : 'reset', error.message))
    call.on('response', answer => {
      response = answer
      void judge(answer, shot).then(problem => {
        if (problem) fail(problem.kind, problem.detail)
        else finish({ ok: true, pod: seen().pod })
        return undefined
      })
    })
    void writeBody(call, shot)
  })
}

interface Problem {
  readonly kind: FailureKind
  readonly detail: string
}

/** Reads the answer to its end. Returns the problem; `undefined` for a complete 2xx whose request body the app received whole. */
async function judge(answer: IncomingMessage, shot: Shot): Promise<Problem | undefined> {
  let body = ''
  answer.setEncoding('utf8')
  try {
    for await (const chunk of answer) body += String(chunk)
  } catch (error) {
    return { kind: 'truncated', detail: String(error) }
  }
  const status = answer.statusCode ?? 0
  if (status < 200 || status > 299) return { kind: 'status', detail: `status ${status}` }
  if (!answer.complete) return { kind: 'truncated', detail: 'the body ended early' }
  if (shot.bodyBytes > 0 && !body.includes(`"received":${shot.bodyBytes},`)) {
    return { kind: 'truncated', detail: 'the app did not get the whole body' }
  }
  return undefined
}

async function writeBody(call: ClientRequest, { bodyBytes, bodyMs }: Shot): Promise<void> {
  if (bodyMs === 0) {
    call.end(bodyBytes > 0 ? Buffer.alloc(bodyBytes, 'x') : undefined)
    return
  }
  const piece = Math.ceil(bodyBytes / PIECES)
  for (let sent = 0; sent < bodyBytes && !call.destroyed; sent += piece) {
    call.write(Buffer.alloc(Math.min(piece, bodyBytes - sent), 'x'))
    await wait(bodyMs / PIECES)
  }
  call.end()
}
