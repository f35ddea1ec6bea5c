import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Command, Described } from './command.ts'
import type { ChildMessage, ParentMessage, ServeOptions } from './serve.ts'

/** The stand-in in a process of its own, so that its work does not slow down the process that measures it. */
export interface ApisixProcess {
  readonly pid: number
  readonly gateways: readonly Described[]
  /** Sends a command. Rejects with the problem that the process reports, or if the process ends. */
  tell(command: Command): Promise<unknown>
  close(): Promise<void>
}

/** How long the process may take to report that it is ready, in ms. */
const START_TIMEOUT = 20_000

/** Resolves when the process is ready. Rejects if the process ends or is not ready in time, and leaves no process behind. */
export async function startApisixProcess(options: ServeOptions): Promise<ApisixProcess> {
  const child = fork(fileURLToPath(new URL('main.ts', import.meta.url)), [
    '--config',
    JSON.stringify(options)
  ])
  const asked = new Map<number, PromiseWithResolvers<unknown>>()
  const ready = Promise.withResolvers<readonly Described[]>()
  let lastId = 0
  child.on('message', (message: ChildMessage) => {
    if (message.kind === 'ready') return ready.resolve(message.gateways)
    const question = asked.get(message.id)
    asked.delete(message.id)
    if (message.kind === 'done') question?.resolve(message.result)
    else question?.reject(new Error(message.problem))
  })
  // `exit` can come before the last message; `close` comes after it.
  child.once('close', (code, signal) => {
    const err = new Error(`the APISIX stand-in ended (${signal ?? `exit status ${code}`})`)
    ready.reject(err)
    for (const question of asked.values()) question.reject(err)
    asked.clear()
  })
  const timer = setTimeout(
    () => ready.reject(new Error('the APISIX stand-in is not ready in time')),
    START_TIMEOUT
  )
  try {
    const gateways = await ready.promise
    return {
      pid: child.pid ?? 0,
      gateways,
      tell: command => {
        lastId += 1
        const question = Promise.withResolvers<unknown>()
        asked.set(lastId, question)
        child.send({ id: lastId, command } satisfies ParentMessage, err => {
          if (err) question.reject(err)
        })
        return question.promise
      },
      close: () => end(child)
    }
  } catch (err) {
    await end(child)
    throw err
  } finally {
    clearTimeout(timer)
  }
}

const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
