import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Log } from '../base/log.ts'
import type { Pair } from './certificate.ts'
import { review } from './review.ts'
import type { InjectSettings } from './settings.ts'

interface Webhook {
  readonly port: number
  /** Serves with this pair from the next connection on. Before the first pair no connection succeeds. */
  use(pair: Pair): void
  close(): Promise<void>
}

const WEBHOOK_PATH = '/v1/inject'

/** A pod is 1.5 MB at most in etcd; twice that as JSON, inside of its review. */
const LARGEST_BODY = 4 * 2 ** 20
const MAX_CONNECTIONS = 256
/** The API server waits 5 s at most. */
const REQUEST_MS = 5000

/**
 * Answers the API server's admission reviews over TLS. Every failure is a status that its `failurePolicy: Ignore`
 * ignores.
 *
 * @throws Error with `code` when the address cannot be listened on
 */
export async function serveWebhook(
  at: { readonly host: string; readonly port: number },
  settings: InjectSettings,
  log: Log
): Promise<Webhook> {
  const server: Server = createServer(
    { minVersion: 'TLSv1.2', requestTimeout: REQUEST_MS },
    (request, response) => {
      const answer = (status: number, body: unknown) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      }
      const isReview = request.method === 'POST' && request.url?.split('?', 1)[0] === WEBHOOK_PATH
      if (!isReview) return answer(404, { error: 'not-found', why: `there is POST ${WEBHOOK_PATH}` })
      void reviewBody(request).then(
        reviewed =>
          answer(
            reviewed ? 200 : 400,
            reviewed ?? { error: 'bad-request', why: 'no AdmissionReview of a pod' }
          ),
        (err: unknown) => {
          log.warn({ err }, 'a review could not be read')
          answer(400, { error: 'bad-request', why: 'the body cannot be read' })
        }
      )
    }
  )
  const reviewBody = async (request: IncomingMessage) => review(JSON.parse(await bodyOf(request)), settings)
  server.maxConnections = MAX_CONNECTIONS
  server.listen(at.port, at.host)
  await once(server, 'listening')
  server.on('error', err => log.error({ err }, 'the webhook failed'))
  return {
    port: (server.address() as AddressInfo).port,
    use: ({ certificate, key }) => server.setSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' }),
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    }
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > LARGEST_BODY) throw new Error('the body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
