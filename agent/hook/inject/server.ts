import type { IncomingMessage } from 'node:http'
import type { Server } from 'node:https'
import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/config.ts'
import { createRare, type Log } from '../../base/log.ts'
import { readJson, TooLong } from '../../base/read.ts'
import { listen, webhookPolicy, type PortPolicy } from '../listen.ts'
import { review, followPair, readInjectSettings, type InjectSettings, type Pair } from './inject.ts'

const WEBHOOK_PATH = '/v1/inject'

/** Limits in bytes. A pod has at most 1.5 MB in etcd. Its JSON inside a review can have twice that size. */
export const BODIES = { each: 4 * 2 ** 20, all: 32 * 2 ** 20 }

/**
 * Returns a function that reads the body of a request. If the bodies that are being read exceed `all` together, the oldest request is
 * ended: a real caller sends its body in milliseconds. The function rejects with TooLong, or with the error of the connection.
 */
function createBodies({ each, all }: typeof BODIES): (request: IncomingMessage) => Promise<Buffer> {
  /** The bytes of each body so far, the oldest first. */
  const held = new Map<IncomingMessage, number>()
  let sum = 0
  const forget = (request: IncomingMessage) => {
    sum -= held.get(request) ?? 0
    held.delete(request)
  }
  const makeRoom = () => {
    for (const oldest of held.keys()) {
      if (sum <= all) return
      forget(oldest)
      oldest.destroy(new Error('too many bodies are being read at once'))
    }
  }
  return async request => {
    const chunks: Buffer[] = []
    held.set(request, 0)
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        const size = (held.get(request) ?? 0) + chunk.length
        if (size > each) throw new TooLong(`more than ${each} bytes`)
        sum += chunk.length
        held.set(request, size)
        chunks.push(chunk)
        makeRoom()
      }
      return Buffer.concat(chunks)
    } finally {
      forget(request)
    }
  }
}

/**
 * Answers the API server's admission reviews over TLS. Every failure is an HTTP error status. The API server then admits the pod
 * unchanged, because the webhook has `failurePolicy: Ignore`.
 *
 * @throws Error with `code` if the server cannot listen on the address
 */
export async function serveWebhook(
  at: { readonly host: string; readonly port: number },
  settings: InjectSettings,
  log: Log,
  clock: Pick<Clock, 'now'>,
  policy: PortPolicy = webhookPolicy
) {
  const read = createBodies(BODIES)
  const rare = createRare(clock)
  const reviewBody = async (request: IncomingMessage) => review(readJson(await read(request)), settings)
  const listening = await listen(
    (request, response) => {
      const answer = (status: number, body: unknown, close = false) => {
        const headers = { 'content-type': 'application/json', ...(close && { connection: 'close' }) }
        response.writeHead(status, headers).end(JSON.stringify(body))
      }
      const isReview = request.method === 'POST' && request.url?.split('?', 1)[0] === WEBHOOK_PATH
      if (!isReview) {
        return answer(404, { error: 'not-found', why: `there is POST ${WEBHOOK_PATH}` }, !request.complete)
      }
      void reviewBody(request).then(
        reviewed =>
          answer(
            reviewed ? 200 : 400,
            reviewed ?? { error: 'bad-request', why: 'no AdmissionReview of a pod' }
          ),
        (err: unknown) => {
          const leftOut = rare.next()
          if (leftOut !== undefined) log.warn({ err, leftOut }, 'a review could not be read')
          if (err instanceof TooLong) answer(413, { error: 'too-large', why: err.message }, true)
          else answer(400, { error: 'bad-request', why: 'the body cannot be read' }, true)
        }
      )
    },
    at,
    policy,
    { minVersion: 'TLSv1.2' }
  )
  const server = listening.server as Server
  void listening.failed.catch((err: unknown) => log.error({ err }, 'the webhook failed'))
  return {
    port: listening.port,
    /** Serves with this pair from the next connection on. Before the first pair no connection succeeds. */
    use: ({ certificate, key }: Pair) =>
      server.setSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' }),
    close: () => listening.close()
  }
}

interface InjectParts {
  readonly inject: NonNullable<Config['inject']>
  readonly host: string
  readonly clock: Clock
  readonly log: Log
}

/**
 * The webhook that adds hooks to pods. Resolves with the function that stops it.
 *
 * @throws Error if `inject.file` cannot be read, or the webhook cannot listen on its port
 */
export async function startInjection({ inject, host, clock, log }: InjectParts) {
  const settings = readInjectSettings(inject.file)
  const webhook = await serveWebhook({ host, port: inject.port }, settings, log, clock)
  const stop = followPair(settings, pair => webhook.use(pair), { clock, log })
  log.info({ port: webhook.port }, 'adding hooks to pods that ask for them')
  return async () => {
    stop()
    await webhook.close()
  }
}
