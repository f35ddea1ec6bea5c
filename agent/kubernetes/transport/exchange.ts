import { constants, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2'
import type { IncomingHttpHeaders } from 'node:http'

interface Handlers {
  readonly onHead: (status: number, headers: IncomingHttpHeaders) => void
  readonly onData: (chunk: Buffer) => void
}

/**
 * One request on one session. Resolves when the answer is complete. Rejects if it was cut off, if a handler threw, or with the signal's
 * reason. The stream is closed afterwards in any case.
 */
export async function exchange(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: string | undefined,
  signal: AbortSignal,
  { onHead, onData }: Handlers
): Promise<void> {
  if (signal.aborted) throw reasonOf(signal)
  const stream = session.request(headers, { endStream: body === undefined })
  await new Promise<void>((resolve, reject) => {
    let failure: unknown
    let ended = false
    const fail = (error: unknown) => {
      failure ??= error
      stream.close(constants.NGHTTP2_CANCEL)
    }
    const guarded =
      <A extends unknown[]>(handler: (...args: A) => void) =>
      (...args: A) => {
        if (failure !== undefined) return
        try {
          handler(...args)
        } catch (error) {
          fail(error)
        }
      }
    const abort = () => fail(reasonOf(signal))
    signal.addEventListener('abort', abort, { once: true })
    stream.on(
      'response',
      guarded(head => onHead(head[':status'] ?? 0, head))
    )
    stream.on('data', guarded(onData))
    stream.on('end', () => (ended = true))
    stream.on('error', error => (failure ??= error))
    stream.on('close', () => {
      signal.removeEventListener('abort', abort)
      const cut = !ended || stream.rstCode !== constants.NGHTTP2_NO_ERROR
      if (failure !== undefined) reject(failure)
      else if (cut) reject(new Error(`the connection was cut (HTTP/2 code ${stream.rstCode})`))
      else resolve()
    })
    if (body !== undefined) stream.end(body)
  })
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason })
}
