import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'

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
