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

export const serverText = (listen: Listen): string => `server {
  listen 0.0.0.0:${PORT}${listen === 'http' ? ';' : ` ssl;${tls}`}
  access_log off;
  client_max_body_size 2m;
  client_body_buffer_size 1m;
  location / {
    content_by_lua_block { require("apisix.drain.api").serve() }
  }${listen === 'both' ? plainToo : ''}
}
`

/** A pattern for each text of `serverText`, which matches with any indentation. */
const OURS = LISTENS.map(listen => {
  const words = serverText(listen).trim().split(/\s+/)
  return new RegExp(words.map(word => word.replaceAll(/\W/g, String.raw`\$&`)).join(String.raw`\s+`))
})

/**
 * The text of `httpEnd` with the plugin's server in it. The plugin's server block is replaced where it stands, unless the operator
 * has changed it.
 * @returns the text, or why the operator must change it
 */
export function withServer(text: string, listen: Listen): { text: string } | { conflict: string } {
  const ours = OURS.find(one => one.test(text))
  if (ours) return { text: text.replace(ours, () => serverText(listen).trimEnd()) }
  if (text.includes('apisix.drain.api'))
    return listen === 'http' || /\blisten\s[^;]*\bssl\b/.test(text)
      ? { text }
      : {
          conflict: `the server of the plugin is not as it was printed, and has no TLS: add ssl and a certificate by hand (docs/install.md), or use --listen http with barrierTLS.enabled=false in the agent`
        }
  if (new RegExp(String.raw`\blisten\s[^;]*\b${PORT}\b`).test(text))
    return {
      conflict: `a server listens on port ${PORT} already: move it, or give the plugin another port by hand (apisix.barrier.port in the agent)`
    }
  return { text: text === '' ? serverText(listen) : `${text.trimEnd()}\n${serverText(listen)}` }
}
