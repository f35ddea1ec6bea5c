import type { IncomingMessage } from 'node:http'
import type { Destination, Router } from './router.ts'

/** The destination of a request, by its method, path and Host. */
export function destinationOf(router: Router, request: IncomingMessage): Destination {
  const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
  const host = (request.headers.host ?? '').replace(/:\d+$/, '')
  return router.find(request.method ?? 'GET', path, host)
}
