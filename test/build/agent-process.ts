import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { until } from './apisix.ts'
import { configFile } from './config.ts'
import type { Rig } from './rig.ts'

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))

/** The real agent program, in a separate process. */
export interface AgentProcess {
  readonly port: number
  /** Its log so far, by line. */
  lines(): readonly Record<string, unknown>[]
  /** Freezes the process (SIGSTOP), or resumes it; the agent does not notice the gap. */
  pause(): void
  resume(): void
  /** Ends it like the kernel (SIGKILL) or the kubelet (SIGTERM). Resolves with its exit code when it is gone. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null>
}

/**
 * Starts the agent with the settings of a rig. The rig must not have another agent. Resolves when the agent is ready. If
 * `stdout` is a file descriptor, `lines` stays empty, and `SERVE_PORT` must be set.
 */
export async function startAgentProcess(
  rig: Rig,
  differs: Readonly<Record<string, string>> = {},
  stdout: number | 'pipe' = 'pipe'
): Promise<AgentProcess> {
  const settings = { ...rig.settings, APISIX_ADMIN_KEY: rig.barrierToken, ...differs }
  const child = spawn(process.execPath, [...process.execArgv, MAIN, '--config', configFile(settings)], {
    stdio: ['ignore', stdout, 'inherit'],
    env: {
      PATH: process.env['PATH'],
      ...(process.env['FAULTS_MUTANT'] !== undefined && { FAULTS_MUTANT: process.env['FAULTS_MUTANT'] })
    }
  })
  const gone = once(child, 'close')
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const lines = () =>
    text
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line) as Record<string, unknown>)
  const end = async (signal: 'SIGKILL' | 'SIGTERM') => {
    child.kill(signal)
    const [code] = (await gone) as [number | null]
    return code
  }
  try {
    const listens = () => stdout !== 'pipe' || text.includes('"listening"') || child.exitCode !== null
    await until('the agent listens', listens, 30_000)
    const port = Number(differs['SERVE_PORT'] ?? lines().find(({ msg }) => msg === 'listening')?.['port'])
    let isReady = false
    const ask = async () => (isReady ||= (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
    await until('it is ready', () => (void ask().catch(() => {}), isReady), 30_000)
    return {
      port,
      lines,
      pause: () => void child.kill('SIGSTOP'),
      resume: () => void child.kill('SIGCONT'),
      end
    }
  } catch (error) {
    await end('SIGKILL')
    throw error
  }
}
