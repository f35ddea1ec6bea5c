import { differenceOf, differsSince, holderName, holderRows } from '../dashboard/model/upstreams.ts'
import { ago, count, formatAge, formatMs } from '../dashboard/model/format.ts'
import { isOpen, lanesOf, waitOf, type Standing } from '../dashboard/model/lanes.ts'
import { lagFigures, type Quantiles } from '../dashboard/model/lags.ts'
import { HOUR_MS, lastHourOf, sentenceOf, type LastHour, type Sentence } from '../dashboard/model/headline.ts'
import { idleLagOf } from '../report/snapshot/lag.ts'
import type { Grade } from '../rules/drain/drain.ts'
import { earliest, latest } from '../rules/drain/times.ts'
import { gatewayState, STANDING } from '../dashboard/model/words.ts'
import type { Snapshot } from '../report/snapshot/snapshot.ts'

/** The output of `apisix-drain status`, made from a snapshot. Times are in ms, on the agent's clock. */
export interface StatusReport extends Sentence {
  readonly lastHour: Omit<LastHour, 'drain'>
  readonly at: number
  readonly agent: Pick<Snapshot['agent'], 'version' | 'dryRun' | 'leader' | 'apisix' | 'missingParts'>
  /** Of the pods of the last hour, in ms: from the decision until sealed, and from Ready until routed. */
  readonly lag: Readonly<Record<'out' | 'in', Quantiles | null>>
  /** The newest answered hooks, the newest first, at most 20. */
  readonly answers: readonly {
    readonly pod: string
    readonly status: number
    readonly result: string
    readonly evidence: string
    readonly elapsedMs: number
    readonly by: string
    readonly at: number
  }[]
  readonly gateways: readonly {
    readonly name: string
    readonly state: ReturnType<typeof gatewayState>['label']
    readonly evidence: Grade | 'none'
    readonly why: string
    readonly workers: number
    /** The revision of the worker that is furthest behind; `null` without the plugin. */
    readonly revision: number | null
    /** How many revisions that worker is behind the newest worker of all gateways. */
    readonly behind: number | null
    readonly answeredAt: number | null
  }[]
  readonly pods: readonly {
    readonly pod: string
    readonly standing: Standing
    readonly waitsFor: string
    readonly deadline: number
    readonly hooks: number
  }[]
  /** The newest drains that wait for nothing any more, the newest first, at most 5. */
  readonly last: readonly {
    readonly pod: string
    readonly standing: Standing
    readonly evidence: Grade | null
    /** In ms since the decision of Kubernetes: when new requests stopped, the last request ended, and the first hook was answered. */
    readonly sealed: number | null
    readonly idle: number | null
    readonly ack: number | null
    readonly seenAt: number
  }[]
  /** The holders that differ from Kubernetes, the oldest change first. `ownerSince`: the oldest change that the owner has not written. */
  readonly upstreams: readonly {
    readonly upstream: string
    readonly owner: string
    readonly since: number
    readonly ownerSince: number | null
    readonly difference: string
  }[]
}

/** How many finished drains, and how many answers, are listed. */
const [SHOWN, ANSWERS] = [5, 20]

/** The report for this snapshot. It applies the rules of the dashboard. */
export function statusOf(snapshot: Snapshot): StatusReport {
  const { agent, at, gateways, holders } = snapshot
  const { version, dryRun, leader, apisix, missingParts } = agent
  const newest = latest(gateways.flatMap(({ workers }) => workers.map(({ revision }) => revision))) ?? 0
  const { level, text } = lastHourOf(snapshot)
  const { out, in: way } = lagFigures(snapshot, HOUR_MS, at)
  return {
    ...sentenceOf(snapshot),
    lastHour: { level, text },
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
    last: lanesOf(snapshot.drains, snapshot.past)
      .filter(({ drain }) => !isOpen(drain))
      .toSorted((a, b) => b.drain.moments.seenAt - a.drain.moments.seenAt)
      .slice(0, SHOWN)
      .map(({ drain, standing, start, lagMs }) => {
        const { namespace, pod, verdict, moments } = drain
        const { ackAt, seenAt } = moments
        return {
          pod: `${namespace}/${pod}`,
          standing,
          evidence: verdict?.grade ?? null,
          sealed: lagMs,
          idle: idleLagOf(moments),
          ack: ackAt === null ? null : Math.max(0, ackAt - start),
          seenAt
        }
      }),
    upstreams: holderRows(holders, 'differing', '').map(holder => ({
      upstream: holderName(holder),
      owner: holder.owner,
      since: differsSince(holder),
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
      ['LAST DRAIN', 'STATE', 'EVIDENCE', 'SEALED', 'IDLE', 'ACK', 'BEGAN'],
      report.last.map(({ pod, standing, evidence, sealed, idle, ack, seenAt }) => [
        pod,
        STANDING[standing].label,
        evidence ?? '-',
        ...[sealed, idle, ack].map(ms => (ms === null ? '-' : formatMs(ms))),
        ago(seenAt, at)
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
    `APISIX with ${apisix.mode ?? 'a mode that is not known yet'}`,
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
