import { Client, credentials, status, type ClientDuplexStream } from '@grpc/grpc-js'
import { EventSource } from 'eventsource'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { Gateway } from './gateway.ts'

/** A connection that does not end by itself. */
export interface LongConnection {
  /** Resolves with the end as the client's protocol reports it. */
  readonly end: Promise<string>
  close(): void
}

const asIs = (data: Buffer): Buffer => data

/** Opens a websocket and resolves after its first echo. Its end is the close code. */
export async function websocket(gateway: Gateway): Promise<LongConnection> {
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/u`)
  const end = once(socket, 'close').then(([code]) => String(code))
  await once(socket, 'open')
  socket.send('hello')
  await once(socket, 'message')
  return { end, close: () => socket.terminate() }
}

/** Subscribes to server-sent events and resolves after the first. Its end is the data of the last event. */
export async function eventStream(gateway: Gateway): Promise<LongConnection> {
  const source = new EventSource(`${gateway.url}/u/sse`)
  const { promise: end, resolve, reject } = Promise.withResolvers<string>()
  await new Promise<void>((first, failed) => {
    source.addEventListener('message', () => first())
    source.addEventListener('error', () => {
      failed(new Error('no event came'))
      reject(new Error('the stream broke'))
    })
    source.addEventListener('bye', event => {
      source.close()
      resolve(String(event.data))
    })
  })
  end.catch(() => undefined)
  return { end, close: () => source.close() }
}

/** Begins a bidirectional gRPC stream and resolves after its first echo. Its end is the name of its status. */
export async function grpcStream(gateway: Gateway): Promise<LongConnection> {
  const client = new Client(gateway.h2.replace('http://', ''), credentials.createInsecure())
  const call: ClientDuplexStream<Buffer, Buffer> = client.makeBidiStreamRequest('/g/Chat', asIs, asIs)
  const end = new Promise<string>(resolve => {
    call.on('status', ({ code }: { code: status }) => {
      client.close()
      resolve(status[code] ?? String(code))
    })
  })
  call.on('error', () => undefined)
  call.write(Buffer.from('hello'))
  await once(call, 'data')
  return { end, close: () => call.cancel() }
}

/** Makes a gRPC call with one answer. Resolves with the answer. */
export async function grpcCall(gateway: Gateway): Promise<string> {
  const client = new Client(gateway.h2.replace('http://', ''), credentials.createInsecure())
  try {
    return await new Promise<string>((resolve, reject) => {
      client.makeUnaryRequest('/g/Once', asIs, asIs, Buffer.from('hello'), (error, answer?: Buffer) =>
        error ? reject(error) : resolve(String(answer))
      )
    })
  } finally {
    client.close()
  }
}
