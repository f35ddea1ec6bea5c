import { isIP } from 'node:net'
import { generate, type SubjectAltNameEntry } from 'selfsigned'

export interface Certificate {
  /** PEM. The certificate is self-signed, so it is its own CA. */
  readonly ca: string
  readonly cert: string
  readonly key: string
}

const altName = (host: string): SubjectAltNameEntry =>
  isIP(host) ? { type: 7, ip: host } : { type: 2, value: host }

/** A new certificate for these names and addresses, valid for a day. */
export async function selfSigned(hosts: readonly string[]): Promise<Certificate> {
  const pems = await generate([{ name: 'commonName', value: 'sandbox-kubernetes' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notAfterDate: new Date(Date.now() + 86_400_000),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      { name: 'subjectAltName', altNames: [...new Set(hosts)].map(altName) }
    ]
  })
  return { ca: pems.cert, cert: pems.cert, key: pems.private }
}
