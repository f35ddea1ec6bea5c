import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Certificates in a file that may be replaced, such as a mounted ConfigMap. */
export interface Pem {
  /** The current text. */
  read(): string
}

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** @throws Error if the text holds no certificate, or one that cannot be read */
function check(text: string): string {
  const blocks = text.match(BLOCK) ?? []
  if (blocks.length === 0) throw new Error('it holds no PEM certificate (-----BEGIN CERTIFICATE-----)')
  for (const [i, block] of blocks.entries()) {
    try {
      void new X509Certificate(block).subject
    } catch {
      throw new Error(`its certificate ${i + 1} of ${blocks.length} is damaged`)
    }
  }
  return text
}

/**
 * Certificates from a file. Each `read` reads the file again. While the file is missing or not PEM, it returns the last good text.
 *
 * @throws Error if the first read fails or finds no certificate
 */
export function pemFromFile(path: string): Pem {
  let seen = readFileSync(path, 'utf8')
  let good = check(seen)
  return Object.freeze({
    read() {
      try {
        const text = readFileSync(path, 'utf8')
        if (text !== seen) {
          seen = text
          good = check(text)
        }
      } catch {
        // During a rotation the file can be missing or incomplete. A later call reads it again.
      }
      return good
    }
  })
}
