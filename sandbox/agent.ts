import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import type { MountedAccount } from './kubernetes/account.ts'
import { ensureDashboard } from '../scripts/dashboard.ts'
import { waitFor } from './wait-for.ts'

export interface AgentOptions {
  /** The folder for the agent's configuration, its keys and its log. */
  readonly directory: string
  /** How the agent reaches the API server: by a kubeconfig, or by an account that is mounted as in a pod. */
  readonly kubernetes: { readonly kubeconfig: string } | { readonly account: MountedAccount }
  readonly admin: { readonly url: string; readonly key: string }
  readonly controlPort: number
  /** Set if the gateways have the Barrier API and the agent should use it. */
  readonly barrier?: { readonly port: number; readonly token: string } | undefined
  readonly gatewayNamespace: string
  /** Turns `sync` on: an upstream follows the Service that claims it. */
  readonly sync?: boolean
  readonly host: string
  readonly port: number
  /** How long the agent may take to become ready, in ms. */
  readonly readyMs?: number
  /** The program to run in place of agent/main.ts, for tests. */
  readonly main?: string
}

export interface Agent {
  readonly url: string
  readonly logFile: string
  readonly pid: number
  /** Sends SIGTERM, then SIGKILL if that is not enough. Resolves when the process is gone. */
  close(): Promise<void>
}

const MAIN = fileURLToPath(new URL('../agent/main.ts', import.meta.url))
const TETHER = new URL('tether.ts', import.meta.url).href
/** Node's flags, the same as in the Dockerfile. */
const FLAGS = ['--max-semi-space-size=8']
const LOG_LINES = 15
/** From SIGTERM to SIGKILL, in ms. Short, because the agent holds no hook by then. */
const END_MS = 5000

/**
 * Starts the agent as users start it, with a configuration file, and waits for its /readyz.
 * Rejects with the end of the log if the agent exits, or is not ready in time.
 */
export async function startAgent(options: AgentOptions, signal?: AbortSignal): Promise<Agent> {
  const main = options.main ?? MAIN
  await ensureDashboard()
  if (!existsSync(main)) throw new Error(`${main} does not exist: there is no agent to run`)
  const configFile = join(options.directory, 'agent.yaml')
  const logFile = join(options.directory, 'agent.log')
  const keyFile = join(options.directory, 'admin-key')
  const tokenFile = join(options.directory, 'barrier-token')
  await writeFile(keyFile, options.admin.key, { mode: 0o600 })
  if (options.barrier) await writeFile(tokenFile, options.barrier.token, { mode: 0o600 })
  await writeFile(configFile, stringify(agentConfig(options, keyFile, tokenFile)))

  const log = await open(logFile, 'a')
  const child = spawn(process.execPath, [...FLAGS, '--import', TETHER, main, '--config', configFile], {
    env: { ...process.env, ...('account' in options.kubernetes && options.kubernetes.account.env) },
    detached: true, // Ctrl-C is for the sandbox, which ends the agent in its turn
    stdio: ['ignore', log.fd, log.fd, 'ipc']
  })
  let ended: string | undefined
  const exited = new Promise<void>(resolve => {
    child.once('error', error => {
      ended ??= error.message
      resolve()
    })
    child.once('exit', (code, killed) => {
      ended ??= killed ?? `exit code ${code}`
      resolve()
    })
  })
  await log.close()

  const url = `http://${options.host}:${options.port}`
  const agent: Agent = {
    url,
    logFile,
    pid: child.pid ?? 0,
    async close() {
      const timer = setTimeout(() => child.kill('SIGKILL'), END_MS)
      child.kill('SIGTERM')
      await exited
      clearTimeout(timer)
    }
  }
  try {
    const ready = async () => {
      if (ended !== undefined) throw new Error(`it ended: ${ended}`)
      return await answersOk(`${url}/readyz`)
    }
    await waitFor('the agent is ready', ready, { withinMs: options.readyMs, signal })
  } catch (error) {
    await agent.close()
    const lines = (await readFile(logFile, 'utf8')).trim().split('\n').slice(-LOG_LINES)
    throw new Error(`the agent did not start; the end of its log:\n${lines.join('\n')}`, { cause: error })
  }
  return agent
}

const PROBE_MS = 1000

async function answersOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

/** The agent's configuration. Every other setting keeps its default. */
function agentConfig(options: AgentOptions, keyFile: string, tokenFile: string) {
  const { kubernetes, admin, controlPort, barrier, gatewayNamespace, host, port } = options
  return {
    kubernetes: 'account' in kubernetes ? { account: kubernetes.account.folder } : kubernetes,
    apisix: {
      admin: { url: admin.url, keyFile },
      control: { port: controlPort },
      ...(barrier && { barrier: { port: barrier.port, scheme: 'http', tokenFile } }),
      gateways: { namespace: gatewayNamespace }
    },
    ...(options.sync && { sync: { allow: ['*/*'] } }),
    // Without a login: the dashboard is on loopback, for the user who started the sandbox.
    serve: { host, port, dashboard: { enabled: true, auth: 'none' } }
  }
}
