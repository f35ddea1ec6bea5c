import { X509Certificate } from 'node:crypto'
import { generate } from 'selfsigned'

/** A certificate that is its own CA, and its key. PEM. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

const DAY_MS = 86_400_000
const LIFETIME_MS = 90 * DAY_MS
/** A new certificate is made this long before the old one ends. */
const RENEW_MS = 30 * DAY_MS
/** The validity of a new certificate starts this long before now, for clocks that are behind the agent's. */
const BACKDATED_MS = 3_600_000

/**
 * Makes a certificate for this host that is its own CA.
 *
 * @param now ms
 */
export async function makePair(host: string, now: number): Promise<Pair> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: host.slice(0, 64) }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(now - BACKDATED_MS),
    notAfterDate: new Date(now + LIFETIME_MS),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: host }] }
    ]
  })
  return { certificate: cert, key }
}

/** Whether the certificate is for this host, and valid now and for RENEW_MS more. False if it is unreadable. `now` in ms. */
export function isFresh(pair: Pair, host: string, now: number): boolean {
  try {
    const certificate = new X509Certificate(pair.certificate)
    const lasts = certificate.validToDate.getTime() - now > RENEW_MS
    return lasts && certificate.validFromDate.getTime() <= now && certificate.checkHost(host) !== undefined
  } catch {
    return false
  }
}
