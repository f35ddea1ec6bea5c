import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'

/**
 * One pod. It reads the body, waits for `?ms=` milliseconds or, with `?hold`, for the message `release`, and answers with its own name
 * and the request. backend.ts starts it with its address as arguments, and gets its port and every request as a message.
 */
const [host, name, port = '0'] = process.argv.slice(2)

process.setMaxListeners(0)
const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://pod')
  let bytes = 0
  request.on('data', (part: Buffer) => {
    bytes += part.length
  })
  request.on('end', () => {
    const answer = () => {
      response.setHeader('x-backend', name ?? '')
      response.setHeader('x-host', request.headers.host ?? '')
      const redirect = url.searchParams.get('accel')
      if (redirect) response.setHeader('x-accel-redirect', redirect)
      response.statusCode = Number(url.searchParams.get('status') ?? 200)
      response.end(`${name} ${bytes}\n`)
    }
    if (url.searchParams.has('hold')) process.once('message', answer)
    else setTimeout(answer, Number(url.searchParams.get('ms') ?? 0))
  })
  process.send?.({ request: url.pathname + url.search })
})

server.on('upgrade', (_request, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
  socket.on('data', part => socket.write(part))
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.end())
})

// gRPC has its own port. A proxy does not parse gRPC messages, so this server does not either
const grpc = createHttp2Server()
grpc.on('stream', (stream, headers) => {
  process.send?.({ request: headers[':path'] })
  stream.on('error', () => stream.destroy())
  stream.resume()
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'x-backend': name })
    stream.end()
  })
})

const portOf = (listening: { address(): unknown }): unknown => {
  const address = listening.address()
  return typeof address === 'object' && address !== null && 'port' in address ? address.port : undefined
}

server.keepAliveTimeout = 60_000
server.listen(Number(port), host, () => {
  grpc.listen(0, host, () => process.send?.({ port: portOf(server), grpc: portOf(grpc) }))
})
process.on('disconnect', () => process.exit())
