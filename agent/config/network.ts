/** A failed connection in words: the meaning of the system's code, and the settings to check. */

/** The names of the settings for connections to one kind of server. */
export interface Route {
  /** The setting of the server's address. */
  readonly address: string
  /** The setting of the server's scheme. Absent: it is always http. */
  readonly scheme?: string
  /** The setting of the CA that signs the server's certificate. */
  readonly ca: string
}

const MEANING: readonly (readonly [code: RegExp, meaning: (route: Route) => string])[] = [
  [/^E[MN]FILE$/, () => 'the agent has no file descriptor left: raise the limit of open files (ulimit -n)'],
  [
    /^(ENOTFOUND|EAI_AGAIN)$/,
    ({ address }) =>
      `the host name has no address: correct it in ${address}, with the namespace of the Service (name.namespace)`
  ],
  [
    /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST))$/,
    ({ scheme }) =>
      `the server does not speak TLS at that port: write http instead of https in ${scheme ?? ''}, or correct the port`
  ],
  [
    /^(ECONNRESET|EPIPE|HPE_INVALID_CONSTANT)$/,
    ({ scheme }) =>
      `the server broke the connection off: ${scheme ? `if it speaks TLS at that port, write https instead of http in ${scheme}; otherwise ` : ''}look at its log, and at proxies in between`
  ],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED)$/,
    ({ ca }) =>
      `the agent does not trust the CA of the server's certificate: give the PEM of that CA in ${ca}`
  ],
  [/^CERT_HAS_EXPIRED$/, () => "the server's certificate has expired: renew it"],
  [
    /^CERT_NOT_YET_VALID$/,
    () => "the server's certificate is not valid yet: compare the clocks of both machines"
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    ({ address }) => `the server's certificate is for another name: write one of its names in ${address}`
  ],
  [
    /^ERR_(TLS|SSL)_.*CERTIFICATE_REQUIRED$/,
    () => 'the server asks for a client certificate, and the agent sends none'
  ]
]

/** The meaning of a failed connection's code (`ECONNREFUSED`), and a remedy; empty for a code without a row. */
export function networkMeaning(code: string | undefined, route: Route): string {
  if (code === undefined) return ''
  return MEANING.find(([codes]) => codes.test(code))?.[1](route) ?? ''
}
