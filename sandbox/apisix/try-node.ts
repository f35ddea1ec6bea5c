import { request, type Agent, type ClientRequest, type IncomingMessage } from 'node:http'
import { placeOf } from '../kubelet/addresses.ts'
import type { Timeouts } from './router.ts'
import type { Target } from './vm/gateway.ts'

/** Why a node gave no answer. `sent`: a byte of the request may have reached it, so it may have acted on it. */
export interface Failure {
  readonly kind: 'error' | 'timeout'
  readonly sent: boolean
}

interface TryOptions {
  readonly agent: Agent
  readonly timeouts: Timeouts
  readonly target: Target
  readonly method: string
  readonly path: string
  readonly headers: string[]
  readonly body: readonly Buffer[]
  readonly onResponse: (response: IncomingMessage) => void
  readonly onFailure: (failure: Failure) => void
}

/** Sends a request to one node. Exactly one of the callbacks is called, once; after `onResponse`, nothing is retried. */
export function tryNode(options: TryOptions): ClientRequest {
  const { target, timeouts } = options
  let done = false
  let sent = false
  let connectTimer: NodeJS.Timeout | undefined
  const fail = (kind: Failure['kind']): void => {
    if (done) return
    done = true
    clearTimeout(connectTimer)
    options.onFailure({ kind, sent })
    attempt.destroy()
  }
  const attempt = request({
    agent: options.agent,
    ...placeOf(target.host, target.port),
    method: options.method,
    path: options.path,
    headers: options.headers,
    setHost: false,
    timeout: timeouts.readMs
  })
  attempt.once('socket', socket => {
    if (!socket.connecting) {
      sent = true
      return
    }
    connectTimer = setTimeout(() => fail('timeout'), timeouts.connectMs)
    connectTimer.unref()
    socket.once('connect', () => {
      clearTimeout(connectTimer)
      sent = true
    })
  })
  attempt.once('timeout', () => {
    fail('timeout')
    // In the middle of an answer a failure cannot be reported any more, so the answer breaks off.
    attempt.destroy()
  })
  attempt.on('error', () => fail('error'))
  attempt.once('response', response => {
    if (done) return
    done = true
    options.onResponse(response)
  })
  for (const chunk of options.body) attempt.write(chunk)
  attempt.end()
  return attempt
}
