import { spawn } from 'node:child_process'
import type { AppMessage } from '../app/report.ts'
import { now } from '../now.ts'

/** The command for an image name, and how it reports that it is ready. */
export interface Image {
  readonly command: readonly string[]
  /** Variables that the image itself sets; the container's spec overrides them. */
  readonly env?: Readonly<Record<string, string>>
  /** `message`: the IPC message of sandbox/app; `start`: as soon as the process runs. */
  readonly ready: 'message' | 'start'
}

export interface Exit {
  readonly at: number
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** One run of a container: one process. */
export interface Container {
  readonly pid: number | undefined
  readonly startedAt: number
  readonly ready: Promise<void>
  readonly exited: Promise<Exit>
  /** Aborted when the process has ended. */
  readonly dead: AbortSignal
  /** TERM goes to the first process only, as in a real container; KILL ends its children too. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

interface ContainerStart {
  readonly image: Image
  readonly env: Readonly<Record<string, string>>
  readonly onMessage: (message: AppMessage) => void
}

/** A shell's exit code for a command that does not exist. */
const NOT_STARTED = 127

/** Starts the process of one container. If its command cannot be started, the container exits at once. */
export function startContainer({ image, env, onMessage }: ContainerStart): Container {
  const [file = '', ...args] = image.command
  // Its own process group: Ctrl-C in the terminal goes to the sandbox, which then ends its pods itself.
  const child = spawn(file, args, {
    env: { ...image.env, ...env },
    detached: true,
    stdio: image.ready === 'message' ? ['ignore', 'ignore', 'inherit', 'ipc'] : ['ignore', 'ignore', 'ignore']
  })
  const dead = new AbortController()
  const ready = Promise.withResolvers<void>()
  const exited = new Promise<Exit>(resolve => {
    child.once('exit', (code, signal) => {
      const exit = { at: now(), code, signal }
      dead.abort()
      // The last messages of the process may not have arrived yet. A record is complete only when the channel has closed.
      if (child.connected) child.once('disconnect', () => resolve(exit))
      else resolve(exit)
    })
    child.on('error', () => {
      if (child.pid !== undefined) return
      dead.abort()
      resolve({ at: now(), code: NOT_STARTED, signal: null })
    })
  })
  child.on('message', message => {
    const told = message as AppMessage
    if (told.type === 'ready') ready.resolve()
    onMessage(told)
  })
  if (image.ready === 'start') ready.resolve()
  return {
    pid: child.pid,
    startedAt: now(),
    ready: ready.promise,
    exited,
    dead: dead.signal,
    kill(signal) {
      if (child.pid === undefined || dead.signal.aborted) return
      try {
        process.kill(signal === 'SIGTERM' ? child.pid : -child.pid, signal)
      } catch {
        // The process has ended already, and its exit event follows.
      }
    }
  }
}
