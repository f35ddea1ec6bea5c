import { readFileSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { InjectSettings } from './settings.ts'

/** A certificate with its chain, and its key. PEM. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

type Files = Pick<InjectSettings, 'certificateFile' | 'keyFile'>

/** How often the files are read, in ms. The kubelet takes a minute to change them. */
const EVERY_MS = 10_000

/** @throws Error if a file cannot be read */
export const readPair = ({ certificateFile, keyFile }: Files): Pair => ({
  certificate: readFileSync(certificateFile, 'utf8'),
  key: readFileSync(keyFile, 'utf8')
})

/**
 * Calls `use` with the pair in the files, and with each later one. A problem is logged once, and the last good pair stays in use: the
 * files may be missing at the start, or be read in the middle of a change. Returns the function that stops it.
 *
 * @param use throws if the pair is unusable
 */
export function followPair(
  files: Files,
  use: (pair: Pair) => void,
  parts: { clock: Clock; log: Log }
): () => void {
  const ended = new AbortController()
  let used: string | undefined
  let problem: string | undefined
  void follow()
  return () => ended.abort(new Error('the agent is stopping'))

  async function follow(): Promise<void> {
    while (!ended.signal.aborted) {
      read()
      await parts.clock.sleep(EVERY_MS, ended.signal).catch(() => {})
    }
  }

  function read(): void {
    try {
      const pair = readPair(files)
      if (pair.certificate !== used) use(pair)
      used = pair.certificate
      problem = undefined
    } catch (err) {
      const message = String(err)
      if (message !== problem)
        parts.log.warn({ err }, 'the certificate of the webhook cannot be used, so pods get no hook')
      problem = message
    }
  }
}
