import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { LoadCounts, LoadMessage, LoadOptions, LoadOrder, LoadResult } from './options.ts'

/** The load in a process of its own, so that a stall elsewhere in the sandbox does not look like a slow gateway. */
export interface LoadProcess {
  readonly pid: number | undefined
  /** The latest counts, at most a fifth of a second old. */
  counts(): LoadCounts | undefined
  /** Sends to these from now on. Resolves when all earlier requests are over. */
  move(targets: readonly string[]): Promise<void>
  /** Ends the load and gives its figures; rejects if its process has died. */
  stop(): Promise<LoadResult>
  /** Kills it, if it is still there. */
  close(): Promise<void>
}

export function forkLoad(options: LoadOptions): LoadProcess {
  const main = fileURLToPath(new URL('main.ts', import.meta.url))
  const child = fork(main, [JSON.stringify(options)], { detached: true })
  const result = Promise.withResolvers<LoadResult>()
  let counts: LoadCounts | undefined
  let moved = () => {}
  const order = (message: LoadOrder) => void (child.connected && child.send(message))
  child.on('message', message => {
    const told = message as LoadMessage
    if (told.type === 'progress') counts = told.counts
    else if (told.type === 'moved') moved()
    else result.resolve(told.result)
  })
  const exited = new Promise<void>(resolve => {
    // `exit` can come before the last message; `close` comes after it.
    child.once('close', (code, signal) => {
      result.reject(new Error(`the load generator ended by itself (${signal ?? code})`))
      resolve()
    })
  })
  result.promise.catch(() => {}) // stop() handles it
  return {
    pid: child.pid,
    counts: () => counts,
    move: targets =>
      new Promise(resolve => {
        moved = resolve
        order({ targets })
      }),
    async stop() {
      order({})
      return await result.promise
    },
    async close() {
      child.kill('SIGKILL')
      await exited
    }
  }
}
