import type { IncomingMessage } from 'node:http'
import type { Server } from 'node:https'
import type { Clock } from '../../base/clock.ts'
import { type Log, createRare } from '../../base/log.ts'
import { readJson, TooLong } from '../../base/read.ts'
import { listen } from '../listen.ts'
import { webhookPolicy, type PortPolicy } from '../port-policy.ts'
import { createBodies } from './bodies.ts'
import type { Pair } from './pair.ts'
import { review } from './review.ts'
import type { InjectSettings } from './settings.ts'

interface Webhook {
  readonly port: number
  /** Serves with this pair from the next connection on. Before the first pair no connection succeeds. */
  use(pair: Pair): void
  close(): Promise<void>
}

const WEBHOOK_PATH = '/v1/inject'

/** Limits in bytes. A pod has at most 1.5 MB in etcd. Its JSON inside a review can have twice that size. */
export const BODIES = { each: 4 * 2 ** 20, all: 32 * 2 ** 20 }

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
): Promise<Webhook> {
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
    use: ({ certificate, key }) => server.setSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' }),
    close: () => listening.close()
  }
}
