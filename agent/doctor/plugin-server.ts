/** The plugin's server block for nginx, as text for the values of the official chart. Pure. */

export const PORT = 9092
/** The schemes that a listener accepts. `both` is for an upgrade, until the last agent uses https. */
export const LISTENS = ['https', 'both', 'http'] as const
export type Listen = (typeof LISTENS)[number]
/** The folder at which the Secret with the certificate is mounted. */
export const TLS_PATH = '/opt/apisix-drain-tls'

const tls = `
  ssl_certificate ${TLS_PATH}/tls.crt;
  ssl_certificate_key ${TLS_PATH}/tls.key;`
/** nginx has status 497 for plain HTTP at a port with TLS. The named location serves such a request with its method and body. */
const plainToo = `
  error_page 497 = @plain;
  location @plain {
    content_by_lua_block { require("apisix.drain.api").serve() }
  }`

/** @param ipv6 listen at IPv6 addresses too, as APISIX does unless `enableIPv6` is false */
export const serverText = (listen: Listen, ipv6 = true): string => `server {
  ${(ipv6 ? ['0.0.0.0', '[::]'] : ['0.0.0.0'])
    .map(ip => `listen ${ip}:${PORT}${listen === 'http' ? '' : ' ssl'};`)
    .join('\n  ')}${listen === 'http' ? '' : tls}
  access_log off;
  client_max_body_size 2m;
  client_body_buffer_size 1m;
  location / {
    content_by_lua_block { require("apisix.drain.api").serve() }
  }${listen === 'both' ? plainToo : ''}
}
`

/** A pattern for each text of `serverText`, which matches with any indentation. */
const OURS = LISTENS.flatMap(listen => [serverText(listen), serverText(listen, false)]).map(text => {
  const words = text.trim().split(/\s+/)
  return new RegExp(words.map(word => word.replaceAll(/\W/g, String.raw`\$&`)).join(String.raw`\s+`))
})

/** Whether a server other than the plugin's listens on its port. */
export const isListening = (text: string): boolean =>
  !text.includes('apisix.drain.api') && new RegExp(String.raw`\blisten\s[^;]*\b${PORT}\b`).test(text)

/**
 * The text of `httpEnd` with the plugin's server in it. The plugin's server block is replaced where it stands, unless the operator
 * has changed it.
 * @returns the text, or why the operator must change it
 */
export function withServer(
  text: string,
  listen: Listen,
  ipv6: boolean
): { text: string } | { conflict: string } {
  const ours = OURS.find(one => one.test(text))
  const server = serverText(listen, ipv6)
  if (ours) return { text: text.replace(ours, () => server.trimEnd()) }
  if (text.includes('apisix.drain.api'))
    return listen === 'http' || /\blisten\s[^;]*\bssl\b/.test(text)
      ? { text }
      : {
          conflict: `the server of the plugin is not as it was printed, and has no TLS: add ssl and a certificate by hand (docs/install.md), or use --listen http with barrierTLS.enabled=false in the agent`
        }
  return { text: text === '' ? server : `${text.trimEnd()}\n${server}` }
}
