/** Flat name-value lists, as `rawHeaders` has them. */
type RawHeaders = readonly string[]

/** The headers of one connection (RFC 9110, 7.6.1), which a proxy does not pass on. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect'
])

/** The headers for the node. `bodyLength` is set if the client sent a body: it has been read whole, so its length is known. */
export function requestHeaders(raw: RawHeaders, client: string, bodyLength: number | undefined): string[] {
  const headers = without(
    raw,
    name => HOP_BY_HOP.has(name) || name === 'content-length' || name === 'x-real-ip'
  )
  headers.push('X-Real-IP', client)
  if (bodyLength !== undefined) headers.push('Content-Length', String(bodyLength))
  return headers
}

/** For a protocol upgrade: keeps the hop-by-hop headers, because both sides need them. */
export const upgradeHeaders = (raw: RawHeaders, client: string): string[] => [...raw, 'X-Real-IP', client]

/** The headers for the client. */
export function responseHeaders(raw: RawHeaders): string[] {
  const headers = without(raw, name => HOP_BY_HOP.has(name) || name === 'server')
  headers.push('Server', 'APISIX/3.18.0')
  return headers
}

const without = (raw: RawHeaders, drop: (name: string) => boolean): string[] => {
  const kept: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    if (!drop(name.toLowerCase())) kept.push(name, value)
  }
  return kept
}
