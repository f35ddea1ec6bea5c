import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData
} from '@grpc/grpc-js'
import { createServer, type ServerResponse } from 'node:http'
import { WebSocketServer } from 'ws'

/**
 * A pod with connections that do not end by themselves: websockets at `/u`, server-sent events at `/u/sse`, a download of `?ms=` that begins
 * at once at `/u/download`, and gRPC (`/g/Chat`; `/g/Once` is answered once the test releases it). At SIGTERM it ends each in its own
 * protocol, and exits. Reports each request by a message.
 */
const [host = '', name = ''] = process.argv.slice(2)
const report = (request: string): void => void process.send?.({ request })

const events = new Set<ServerResponse>()
const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://pod')
  report(url.pathname)
  request.resume()
  if (url.pathname.endsWith('/sse')) {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' })
    response.write('data: hello\n\n')
    events.add(response)
    response.on('close', () => events.delete(response))
    return
  }
  if (url.pathname.endsWith('/download')) {
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'x-accel-buffering': 'no' })
    response.write('begin ')
    setTimeout(() => response.end('end'), Number(url.searchParams.get('ms') ?? 0))
    return
  }
  setTimeout(() => response.end(name), Number(url.searchParams.get('ms') ?? 0))
})

const sockets = new WebSocketServer({ server })
sockets.on('connection', socket => {
  report('websocket')
  socket.on('message', data => socket.send(data))
})

const bytes = { serialize: (data: Buffer) => data, deserialize: (data: Buffer) => data }
const method = (path: string, requestStream: boolean, responseStream: boolean) => ({
  path,
  requestStream,
  responseStream,
  requestSerialize: bytes.serialize,
  requestDeserialize: bytes.deserialize,
  responseSerialize: bytes.serialize,
  responseDeserialize: bytes.deserialize
})
const chats = new Set<ServerDuplexStream<Buffer, Buffer>>()
const grpc = new Server()
grpc.addService(
  { chat: method('/g/Chat', true, true), once: method('/g/Once', false, false) },
  {
    chat: (call: ServerDuplexStream<Buffer, Buffer>) => {
      report('/g/Chat')
      chats.add(call)
      call.on('data', (data: Buffer) => call.write(data))
      call.on('close', () => chats.delete(call))
    },
    once: (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
      report('/g/Once')
      process.once('message', () => answer(null, call.request))
    }
  }
)

process.on('SIGTERM', () => {
  for (const socket of sockets.clients) socket.close(1001, 'the pod ends')
  for (const response of events) response.end('event: bye\ndata: the pod ends\n\n')
  for (const call of chats) call.end()
  let isShut = false
  grpc.tryShutdown(() => (isShut = true))
  const isOver = (): boolean => sockets.clients.size === 0 && events.size === 0 && isShut
  const timer = setInterval(() => {
    if (isOver()) {
      clearInterval(timer)
      process.exit()
    }
  }, 5)
})
process.on('disconnect', () => process.exit())

grpc.bindAsync(`${host}:0`, ServerCredentials.createInsecure(), (error, grpcPort) => {
  if (error) throw error
  server.listen(0, host, () => {
    const address = server.address()
    process.send?.({ port: typeof address === 'object' ? address?.port : 0, grpc: grpcPort })
  })
})
