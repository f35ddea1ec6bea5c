import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { enterCgroup } from './cgroups.ts'

/** A program that runs until it gets a signal, and logs into a file. */
export interface Daemon {
  readonly name: string
  readonly log: string
  /** Whether the program runs. False once it has ended, for whatever reason. */
  alive(): boolean
  stop(): Promise<void>
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>
}

const STOP_MS = 10_000

/** @param cgroup the cgroup of the new process; default: that of this process */
export function startDaemon(
  name: string,
  log: string,
  program: string,
  args: readonly string[],
  { env = {}, cgroup }: { readonly env?: NodeJS.ProcessEnv; readonly cgroup?: string } = {}
): Daemon {
  const file = openSync(log, 'a')
  const child = spawn(program, args, { stdio: ['ignore', file, file], env: { ...process.env, ...env } })
  closeSync(file)
  const ended = once(child, 'exit')
  try {
    if (cgroup !== undefined && child.pid !== undefined) enterCgroup(cgroup, child.pid)
  } catch (err) {
    child.kill('SIGKILL')
    throw err
  }
  const alive = () => child.exitCode === null && child.signalCode === null
  return {
    name,
    log,
    alive,
    async stop() {
      if (!alive()) return
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
      await ended
      clearTimeout(late)
    },
    async kill() {
      child.kill('SIGKILL')
      if (alive()) await ended
    }
  }
}

/**
 * Waits until `isReady` returns true.
 *
 * @throws Error with the end of the daemon's log, if it has ended or is not ready in time
 */
export async function ready(
  daemon: Daemon,
  isReady: () => Promise<boolean>,
  withinMs = 60_000
): Promise<void> {
  const until = Date.now() + withinMs
  for (;;) {
    if (await isReady().catch(() => false)) return
    if (!daemon.alive() || Date.now() > until) {
      const why = daemon.alive() ? `is not ready within ${withinMs} ms` : 'has ended'
      throw new Error(`${daemon.name} ${why}:\n${readFileSync(daemon.log, 'utf8').slice(-3000)}`)
    }
    await sleep(100)
  }
}
