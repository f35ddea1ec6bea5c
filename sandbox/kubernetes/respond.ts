import { ApiError } from './errors.ts'
import type { Request, Response } from './listener.ts'

export function respond(
  response: Response,
  code: number,
  body: object | string,
  headers: Readonly<Record<string, string>> = {}
): void {
  const text = typeof body === 'string' ? body : `${JSON.stringify(body)}\n`
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json'
  const all = { 'content-type': type, 'content-length': `${Buffer.byteLength(text)}`, ...headers }
  // The two classes have the same calls, but TypeScript cannot call a method of their union.
  if ('stream' in response) {
    response.writeHead(code, all)
    response.end(text)
  } else {
    response.writeHead(code, all)
    response.end(text)
  }
}

/** Sends a refusal. Any other error is a bug of the stand-in, and is sent as a 500. */
export function respondError(response: Response, err: unknown): void {
  const known =
    err instanceof ApiError
      ? err
      : new ApiError(
          500,
          'InternalError',
          `Internal error occurred: ${err instanceof Error ? err.message : 'unknown'}`
        )
  const { retryAfterSeconds } = known.extras
  respond(
    response,
    known.code,
    known.toStatus(),
    retryAfterSeconds === undefined ? {} : { 'retry-after': `${retryAfterSeconds}` }
  )
}

const LARGEST = 3 * 1024 * 1024

/** The whole body of a request. As at the API server, it may have 3 MiB. */
export async function bodyOf(request: Request): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > LARGEST)
      throw new ApiError(413, 'RequestEntityTooLarge', 'Request entity too large: limit is 3145728')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
