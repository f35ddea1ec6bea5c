import { readFileSync } from 'node:fs'
import { clean } from '../base/read.ts'
import { createExchange } from '../gateway/apisix/http.ts'
import type { Config } from '../config/config.ts'
import { SNAPSHOT_VERSION, type Snapshot } from '../report/snapshot/snapshot.ts'
import { formatStatus, statusOf, type StatusReport } from './status-report.ts'

/** The address of the agent, and the credentials for its state. */
interface StatusTarget {
  readonly url: string
  readonly token: string | undefined
}

/** How long the agent may take to answer, in ms. */
const ANSWER_MS = 5000
/** The largest accepted state, in bytes. */
const LARGEST = 64 * 2 ** 20
/** The exit code if the agent does not answer, or refuses. */
const EXIT_UNREACHED = 2

/** The address and token of the agent with this configuration, for a call from its own pod. */
export function ownAgent({ serve }: Pick<Config, 'serve'>): StatusTarget {
  const isAny = serve.host === '0.0.0.0' || serve.host === '::'
  const host = isAny ? '127.0.0.1' : serve.host.includes(':') ? `[${serve.host}]` : serve.host
  const auth = serve.dashboard?.auth
  return {
    url: `http://${host}:${serve.pagePort ?? serve.port}`,
    token: auth?.kind === 'token' ? auth.token.read() : undefined
  }
}

/** The agent at this URL. @throws Error if the file of the token cannot be read */
export const otherAgent = (url: string, tokenFile: string | undefined): StatusTarget => ({
  url,
  token: tokenFile === undefined ? undefined : readFileSync(tokenFile, 'utf8').trim()
})

/**
 * `apisix-drain status`: prints the state of a running agent. Returns the exit code: 0 if no answer is at risk, 1 if an answer is or
 * was at risk (`bad`), 2 if the agent does not answer or refuses.
 */
export async function status(target: StatusTarget, json: boolean): Promise<number> {
  const read = await readStatus(target)
  print(read, json)
  return 'problem' in read ? EXIT_UNREACHED : Number(read.level === 'bad' || read.lastHour.level === 'bad')
}

interface Problem {
  readonly problem: string
  readonly change: string
}

function print(read: StatusReport | Problem, json: boolean): void {
  if (json) process.stdout.write(clean(`${JSON.stringify(read)}\n`))
  else if ('problem' in read) process.stderr.write(clean(`${read.problem}\n  -> ${read.change}\n`))
  else process.stdout.write(clean(formatStatus(read)))
}

async function readStatus({ url, token }: StatusTarget): Promise<StatusReport | Problem> {
  try {
    const { status, data } = await createExchange({ keepAlive: false, maxBytes: LARGEST }).ask({
      method: 'GET',
      url: new URL('/api/state', url).href,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      timeoutMs: ANSWER_MS
    })
    const refused = refusalOf(url, status)
    if (refused) return refused
    const snapshot = JSON.parse(data) as Snapshot
    return snapshot.version === SNAPSHOT_VERSION
      ? statusOf(snapshot)
      : {
          problem: `the agent at ${url} is of another version`,
          change: 'run the command of the same version: in the pod of the agent'
        }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return {
      problem: `no agent answers at ${url}: ${code ?? message}`,
      change: 'run it in the pod of the agent, or name the agent with --url'
    }
  }
}

function refusalOf(url: string, code: number): Problem | undefined {
  const because = (problem: string, change: string) => ({ problem: `the agent at ${url} ${problem}`, change })
  if (code === 200) return undefined
  if (code === 401 || code === 429) {
    return because(
      'refuses the token',
      'name the file of its token with --token-file, or use its configuration'
    )
  }
  if (code === 404) return because('shows no state', 'set serve.dashboard.enabled')
  if (code === 503) return because('has no state yet', 'wait for its first round, and try again')
  return because(`answers ${code}`, 'look whether this is the address of an agent')
}
