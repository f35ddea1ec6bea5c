import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'

const object = z.record(z.string(), z.unknown())

/** The content of `inject.file`, written by the chart: the same parts as in its MutatingAdmissionPolicy. */
const injectSettings = z.strictObject({
  /** The host name that the API server calls and that the certificate is for. */
  host: z.string().min(1),
  /** PEM files: the certificate, and its key. */
  certificateFile: z.string().min(1),
  keyFile: z.string().min(1),
  hook: z.enum(['helper', 'curl']),
  /** The URL that hooks call: `http://apisix-drain.apisix:8080/v1/prestop`. */
  url: z.url(),
  /** The parts that install the helper, if the hook uses it. */
  initContainer: object.optional(),
  volumes: z.array(
    z.strictObject({
      volume: z.looseObject({ name: z.string() }),
      mount: z.looseObject({ mountPath: z.string() })
    })
  )
})

export type InjectSettings = z.infer<typeof injectSettings>

/** @throws Error if the file is unreadable, or is not of the form that the chart writes */
export const readInjectSettings = (file: string): InjectSettings =>
  injectSettings.parse(parse(readFileSync(file, 'utf8')))

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
