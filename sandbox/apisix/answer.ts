import type { Json } from './json.ts'

/** The answer of one of the small servers; it is sent unchanged. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export const json = (
  status: number,
  body: Json | readonly Json[] | Readonly<Record<string, unknown>>
): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: `${JSON.stringify(body)}\n`
})

/** Plain text under APISIX's JSON content type, as its `core.response.exit(400, "…")` sends it. */
export const text = (status: number, body: string): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body
})

export const errorMessage = (status: number, message: string): Answer => json(status, { error_msg: message })

export const withHeaders = (answer: Answer, headers: Readonly<Record<string, string>>): Answer => ({
  ...answer,
  headers: { ...answer.headers, ...headers }
})

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Request Entity Too Large',
  429: 'Too Many Requests',
  499: 'Client Closed Request',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Temporarily Unavailable',
  504: 'Gateway Time-out'
}

/** The page that nginx itself generates, with nginx's wording of the status. */
export function nginxPage(status: number): Answer {
  const title = `${status} ${REASONS[status] ?? 'Error'}`
  const body =
    `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n` +
    '<hr><center>openresty</center>\r\n</body>\r\n</html>\r\n'
  return { status, headers: { 'content-type': 'text/html; charset=utf-8' }, body }
}
