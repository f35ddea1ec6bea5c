import { createServer } from 'node:http'

/**
 * One pod: `?ms=` is how long it takes to answer; the body is read first. Says its own name, and what it was sent.
 * Started by backend.ts with its address as arguments; tells its port, and every request, by a message.
 */
const [host, name] = process.argv.slice(2)

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://pod')
  let bytes = 0
  request.on('data', (part: Buffer) => {
    bytes += part.length
  })
  request.on('end', () => {
    setTimeout(
      () => {
        response.setHeader('x-backend', name ?? '')
        response.setHeader('x-host', request.headers.host ?? '')
        const redirect = url.searchParams.get('accel')
        if (redirect) response.setHeader('x-accel-redirect', redirect)
        response.statusCode = Number(url.searchParams.get('status') ?? 200)
        response.end(`${name} ${bytes}\n`)
      },
      Number(url.searchParams.get('ms') ?? 0)
    )
  })
  process.send?.({ request: url.pathname + url.search })
})

server.on('upgrade', (_request, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
  socket.on('data', part => socket.write(part))
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.end())
})

server.keepAliveTimeout = 60_000
server.listen(0, host, () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
})
process.on('disconnect', () => process.exit())
