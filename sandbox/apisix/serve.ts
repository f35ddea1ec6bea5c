import { z } from 'zod'
import { startApisix, type Apisix, type ApisixOptions } from './apisix.ts'
import { createCommander, describeGateways, type Command } from './command.ts'

const port = z.int().min(0).max(65535)

/** The stand-in's options as data. Ports: 0 picks a free one (with one host only). */
const serveOptions = z.strictObject({
  /** A gateway on each of these loopback addresses. */
  hosts: z.array(z.string()).min(1).default(['127.0.0.1']),
  proxyPort: port.default(9080),
  adminPort: port.default(9180),
  controlPort: port.default(9090),
  /** Without it the gateways have no plugin. */
  barrierPort: port.optional(),
  workers: z.int().min(1).max(64).default(4),
  adminKey: z.string().min(1).default('edd1c9f034335f136f87ad84b625c8f1'),
  barrierToken: z.string().min(1).optional(),
  /** The delay until a worker applies a write: a random number of ms between these two. */
  applyDelayMs: z.tuple([z.number().min(0), z.number().min(0)]).default([0, 6]),
  patchGapMs: z.number().min(0).optional(),
  stream: z.boolean().optional(),
  dictionaryBytes: z.int().min(0).optional(),
  fetchEntries: z.strictObject({ url: z.url(), timeoutMs: z.number().min(0) }).optional()
})

export type ServeOptions = z.input<typeof serveOptions>

/** Starts the stand-in from plain data. Rejects with all problems of that data, or with the system's error. */
export async function serveApisix(input: ServeOptions): Promise<Apisix> {
  const checked = serveOptions.safeParse(input)
  if (!checked.success) throw new Error(z.prettifyError(checked.error))
  const { applyDelayMs, ...options } = checked.data
  const [from, to] = applyDelayMs
  return startApisix({
    ...(withoutUndefined(options) as Omit<ApisixOptions, 'applyDelay'>),
    applyDelay: () => from + Math.random() * (to - from)
  })
}

/** The messages of a child process to its parent: first `ready`, then an answer to each command, by its id. */
export type ChildMessage =
  | { readonly kind: 'ready'; readonly gateways: ReturnType<typeof describeGateways> }
  | { readonly kind: 'done'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly problem: string }

export interface ParentMessage {
  readonly id: number
  readonly command: Command
}

/** Runs the commands of the parent process (`process.send`) until it exits; without a parent it only serves. */
export function obeyParent(apisix: Apisix): void {
  const obey = createCommander(apisix)
  const send = (message: ChildMessage): void => {
    process.send?.(message)
  }
  process.on('message', ({ id, command }: ParentMessage) => {
    obey(command).then(
      result => send({ kind: 'done', id, result }),
      (err: unknown) => send({ kind: 'failed', id, problem: String(err) })
    )
  })
  send({ kind: 'ready', gateways: describeGateways(apisix) })
}

const withoutUndefined = (options: object): object =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
