import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** Replaces addresses such as 127.1.2.3 by 10.1.2.3, because a real API server refuses endpoints on loopback. */
const outside = (json: string): string => json.replaceAll(/"127\.(\d+\.\d+\.\d+)"/g, '"10.$1"')
const inside = (json: string): string => json.replaceAll(/"10\.(\d+\.\d+\.\d+)"/g, '"127.$1"')

/** Forwards all requests to an Admin API, and translates the addresses in both directions. It changes nothing else. */
export async function translateAdmin(url: string) {
  /** Each request is listed before it is forwarded. Its status is `undefined` until the answer comes. */
  const passed: { method: string; path: string; status: number | undefined }[] = []
  const pass = async (request: IncomingMessage) => {
    const { method = 'GET', url: path = '/' } = request
    const body = await text(request)
    const one = { method, path, status: undefined as number | undefined }
    passed.push(one)
    const key = request.headers['x-api-key']
    const answer = await fetch(new URL(path, url), {
      method,
      headers: { 'content-type': 'application/json', ...(typeof key === 'string' && { 'x-api-key': key }) },
      ...(body !== '' && { body: inside(body) })
    })
    one.status = answer.status
    return { status: answer.status, body: outside(await answer.text()) }
  }
  const server = createServer((request, response) => {
    pass(request).then(
      ({ status, body }) => response.writeHead(status, { 'content-type': 'application/json' }).end(body),
      () => response.destroy()
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    close() {
      server.closeAllConnections()
      server.close()
    }
  }
}
