import type { IncomingMessage } from 'node:http'
import { TooLong } from '../../base/read.ts'

interface BodyLimits {
  /** In bytes, of one body. */
  readonly each: number
  /** In bytes, of all bodies that are being read at once; at least `each`. */
  readonly all: number
}

/**
 * Returns a function that reads the body of a request. If the bodies that are being read exceed `all` together, the oldest request is
 * ended: a real caller sends its body in milliseconds. The function rejects with TooLong, or with the error of the connection.
 */
export function createBodies({ each, all }: BodyLimits): (request: IncomingMessage) => Promise<Buffer> {
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
