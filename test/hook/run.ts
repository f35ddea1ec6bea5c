import { spawn, type ChildProcess } from 'node:child_process'
import { architecture } from '../../scripts/go.ts'
import { hookPath } from '../../scripts/hook.ts'

export const HOOK = hookPath(architecture)

export interface HookRun {
  /** The exit code; `undefined` if a signal ended the hook. */
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
  /** The time from the start of the hook to its end. */
  readonly ms: number
}

export interface StartedHook {
  readonly child: ChildProcess
  readonly ended: Promise<HookRun>
}

/** Runs the real program with only the given environment. */
export function startHook(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  command: readonly string[] = [HOOK]
): StartedHook {
  const [program = HOOK, ...before] = command
  const began = performance.now()
  const child = spawn(program, [...before, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const { promise, resolve, reject } = Promise.withResolvers<HookRun>()
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.once('error', reject)
  child.once('close', code =>
    resolve({ code: code ?? undefined, stdout, stderr, ms: performance.now() - began })
  )
  return { child, ended: promise }
}

export const runHook = (...how: Parameters<typeof startHook>): Promise<HookRun> => startHook(...how).ended
