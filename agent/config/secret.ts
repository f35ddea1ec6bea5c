import { readFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'

/** A secret by reference. Printing, logging or serialising it shows its source, never its value. */
export interface Secret {
  /** `<from file /run/secrets/admin-key>` or `<from env ADMIN_KEY>`. */
  readonly source: string
  /** The present value. A file is read again at each call, because mounted secrets are rotated in place. */
  read(): string
  toJSON(): string
  toString(): string
}

function secret(source: string, current: () => string): Secret {
  return Object.freeze({ source, read: current, toJSON: () => source, toString: () => source })
}

/**
 * A secret in a file, without white space at both ends. If a rotation leaves the file missing or empty for a moment, `read` returns
 * the last value.
 *
 * @throws Error if the first read fails or finds nothing
 */
export function secretFromFile(path: string): Secret {
  const load = () => readFileSync(path, 'utf8').trim()
  let last = load()
  if (last === '') throw new Error('the file is empty')
  return secret(`<from file ${path}>`, () => {
    try {
      last = load() || last
    } catch {
      // Kubernetes swaps the symlink of a mounted secret: for a moment there may be nothing to read.
    }
    return last
  })
}

/** @throws Error if the variable is not set or empty */
export function secretFromEnv(name: string, env: Readonly<Record<string, string | undefined>>): Secret {
  const value = env[name]?.trim()
  if (!value) throw new Error('the variable is not set or empty')
  return secret(`<from env ${name}>`, () => value)
}

/** Certificates in a file that may be replaced, such as a mounted ConfigMap. */
interface Pem {
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
