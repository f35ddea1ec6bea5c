import { readFileSync } from 'node:fs'

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
