import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Outcome } from './lane.ts'
import type { Options } from './options.ts'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))

/**
 * Calls `use` with an environment that has a new folder for temporary files, and removes the folder at the end: a process that is
 * killed leaves its files.
 */
export async function withOwnFolder<T>(use: (env: NodeJS.ProcessEnv) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'apisix-drain-faults-'))
  return use({ ...process.env, TMPDIR: folder }).finally(() =>
    rmSync(folder, { recursive: true, force: true })
  )
}

/** Plays all runs of the options in separate processes, until `enough`. Rejects if one of the processes ends early. */
export async function playAll(
  { seed, runs, path, only, processes, lanes, shrinks, knownGaps, log }: Options,
  tell: (outcome: Outcome) => void,
  {
    execArgv = [],
    env = {},
    enough
  }: {
    readonly execArgv?: readonly string[]
    readonly env?: NodeJS.ProcessEnv
    readonly enough?: AbortSignal
  } = {}
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  const paths = path === undefined ? Array.from({ length: runs }, (_, i) => String(i)) : [path]
  const startOne = (i: number) =>
    withOwnFolder(async own => {
      const mine = paths.filter((_, at) => at % processes === i)
      const child = fork(
        WORKER,
        [JSON.stringify({ seed, only, lanes, shrinks, knownGaps, log, paths: mine })],
        {
          execArgv: [...process.execArgv, ...execArgv],
          env: { ...own, ...env }
        }
      )
      let told = 0
      enough?.addEventListener('abort', () => child.kill(), { once: true })
      child.on('message', (outcome: Outcome) => {
        told += 1
        outcomes.push(outcome)
        tell(outcome)
      })
      const [code] = (await once(child, 'close')) as [number | null]
      if (!enough?.aborted && (code !== 0 || told < mine.length))
        throw new Error(`process ${i + 1} ended (${code}) after ${told} of ${mine.length} runs`)
    })
  await Promise.all(Array.from({ length: processes }, (_, i) => startOne(i)))
  return outcomes
}
