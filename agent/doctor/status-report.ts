import { differenceOf, differsSince, holderName, holderRows } from '../dashboard/model/upstreams.ts'
import { ago, count, formatAge, formatMs } from '../dashboard/model/format.ts'
import { isOpen, lanesOf, waitOf } from '../dashboard/model/lanes.ts'
import { lagFigures } from '../dashboard/model/lags.ts'
import { HOUR_MS, lastHourOf, sentenceOf } from '../dashboard/model/headline.ts'
import { earliest, latest } from '../rules/drain/facts.ts'
import { gatewayState, STANDING } from '../dashboard/model/words.ts'
import { SNAPSHOT_VERSION, type Snapshot } from '../report/snapshot/snapshot.ts'
import { readFileSync } from 'node:fs'
import { clean } from '../base/read.ts'
import { createExchange } from '../gateway/apisix/http.ts'
import type { Config } from '../config/config.ts'

/** How many answers are listed. */
const ANSWERS = 20

/** The output of `apisix-drain status`, made from a snapshot. Times are in ms, on the agent's clock. */
export type StatusReport = ReturnType<typeof statusOf>

/** The report for this snapshot. It applies the rules of the dashboard. */
export function statusOf(snapshot: Snapshot) {
  const { agent, at, gateways, holders } = snapshot
  const { version, dryRun, leader, apisix, missingParts } = agent
  const newest = latest(gateways.flatMap(({ workers }) => workers.map(({ revision }) => revision))) ?? 0
  const { level, text } = lastHourOf(snapshot)
  const { out, in: way } = lagFigures(snapshot, HOUR_MS, at)
  return {
    ...sentenceOf(snapshot),
    lastHour: { level, text },
    // Of the pods of the last hour: from the decision until sealed, and from Ready until routed.
    lag: { out: out ?? null, in: way ?? null },
    at,
    agent: { version, dryRun, leader, apisix, missingParts },
    answers: snapshot.acks.slice(0, ANSWERS).map(({ at, by, ack }) => {
      const { pod, status, result, evidence, elapsedMs } = ack
      return { pod: `${pod.namespace}/${pod.name}`, status, result, evidence, elapsedMs, by, at }
    }),
    gateways: gateways.map(gateway => {
      const { name, available, why, workers, barrier, control } = gateway
      const revision = earliest(workers.map(worker => worker.revision)) ?? null
      return {
        name,
        state: gatewayState(gateway).label,
        evidence: available ?? 'none',
        why,
        workers: workers.length,
        // Of the worker that is furthest behind; `null` without the plugin.
        revision,
        behind: revision === null ? null : newest - revision,
        answeredAt: (barrier ?? control)?.lastSuccessAt ?? null
      }
    }),
    pods: lanesOf(snapshot.drains, [])
      .filter(({ drain, standing }) => isOpen(drain) || standing === 'unproved')
      .map(lane => {
        const { drain, standing } = lane
        const { namespace, pod, deadline, hooks, why } = drain
        return { pod: `${namespace}/${pod}`, standing, waitsFor: waitOf(lane) || why, deadline, hooks }
      }),
    upstreams: holderRows(holders, 'differing', '').map(holder => ({
      upstream: holderName(holder),
      owner: holder.owner,
      since: differsSince(holder),
      // The oldest change that the owner has not written.
      ownerSince: holder.behind?.owner ?? null,
      difference: differenceOf(holder, at)
    }))
  }
}

/** Plain lines for a terminal: no colours. */
export function formatStatus(report: StatusReport): string {
  const { agent, at, gateways, pods, upstreams } = report
  const parts = [
    [report.head, report.rest, report.facts, report.lastHour.text].filter(line => line !== '').join('\n'),
    agentLine(agent),
    table(
      ['GATEWAY', 'STATE', 'EVIDENCE', 'WORKERS', 'REVISION', 'BEHIND', 'ANSWERED', ''],
      gateways.map(({ name, state, evidence, workers, revision, behind, answeredAt, why }) => [
        name,
        state,
        evidence,
        workers === 0 ? '-' : String(workers),
        String(revision ?? '-'),
        String(behind ?? '-'),
        answeredAt === null ? 'never' : ago(answeredAt, at),
        why
      ])
    ),
    table(
      ['SYNC LAG, LAST HOUR', 'PODS', 'MEDIAN', 'P99', 'LONGEST'],
      (['out', 'in'] as const).flatMap(way => {
        const of = report.lag[way]
        return of ? [[way, String(of.n), ...[of.p50, of.p99, of.max].map(formatMs)]] : []
      })
    ),
    table(
      ['POD', 'STATE', 'LEFT', 'HOOKS', 'WAITS FOR'],
      pods.map(({ pod, standing, deadline, hooks, waitsFor }) => [
        pod,
        STANDING[standing].label,
        formatMs(Math.max(0, deadline - at)),
        String(hooks),
        waitsFor
      ])
    ),
    table(
      ['ANSWERED', 'STATUS', 'RESULT', 'EVIDENCE', 'TOOK', 'BY', 'WHEN'],
      report.answers.map(({ pod, status, result, evidence, elapsedMs, by, at: when }) => [
        pod,
        String(status),
        result,
        evidence,
        formatMs(elapsedMs),
        by,
        ago(when, at)
      ])
    ),
    table(
      ['UPSTREAM', 'OWNER', 'FOR', 'DIFFERENCE'],
      upstreams.map(({ upstream, owner, since, difference }) => [
        upstream,
        owner,
        formatAge(Math.max(0, at - since)),
        difference
      ])
    )
  ]
  return `${parts.filter(part => part !== '').join('\n\n')}\n`
}

function agentLine({ version, dryRun, leader, apisix, missingParts }: StatusReport['agent']): string {
  const leads = leader.leads ? 'leads' : `follows ${leader.holder ?? 'no leader'}`
  const missing = missingParts.length > 0 ? [`${count(missingParts.length, 'part')} missing`] : []
  return [
    `agent ${version}`,
    leads,
    `APISIX with ${apisix.mode === 'none' ? 'no Admin API' : (apisix.mode ?? 'a mode that is not known yet')}`,
    ...(dryRun ? ['dry run'] : []),
    ...missing
  ].join(' · ')
}

/** A table with columns as wide as their longest cell; empty if there are no rows. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const all = [head, ...rows]
  const widths = head.map((_, i) => Math.max(...all.map(row => row[i]?.length ?? 0)))
  return all
    .map(row =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd()
    )
    .join('\n')
}

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
  if (code === 401) {
    return because(
      'refuses the token',
      'name the file of its token with --token-file, or use its configuration'
    )
  }
  if (code === 404) return because('shows no state', 'set serve.dashboard.enabled')
  return because(`answers ${code}`, 'look whether this is the address of an agent')
}
