import { atOnce, type AtOnceCase } from './at-once.ts'
import { excess, type ExcessCase } from './excess.ts'
import { HARD, HOOK_ARMS, hookResult, hookRun, type HookArm } from './hooks.ts'
import { lostRow } from './lost.ts'
import { overhead } from './overhead.ts'
import { ratio } from './stats.ts'
import type { Row } from './table.ts'
import { watchPods, type WatchResult } from './watch.ts'

/** One question that the benchmark answers, and its answer. */
export interface Section {
  readonly title: string
  /** How it was measured, in a sentence. */
  readonly how: string
  /** @param tell called after every step, to show progress */
  readonly run: (size: Size, tell: (step: string) => void) => Promise<readonly Row[]>
}

/** `full` makes the figures of docs/lab/benchmarks.md; `quick` only shows that all benchmarks run. */
export type Size = 'full' | 'quick'

const HOOK_ROUNDS: Record<Size, number> = { full: 3, quick: 1 }
const LOST_ROUNDS: Record<Size, number> = { full: 5, quick: 1 }
const DRAINS: Record<Size, number> = { full: 300, quick: 40 }
const PODS: Record<Size, readonly number[]> = { full: [1000, 10_000, 50_000], quick: [1000] }
const OVERHEAD_ROUNDS: Record<Size, number> = { full: 5, quick: 1 }
const EXCESS_ROLLOUTS: Record<Size, number> = { full: 5, quick: 1 }
const EXCESS: readonly ExcessCase[] = (['etcd-1.8', 'standalone', 'discovery'] as const).flatMap(mode =>
  (['all Ready', 'one of three NotReady', 'rolling'] as const).map(gateways => ({ mode, gateways }))
)
const WATCH_ROUNDS: Record<Size, number> = { full: 5, quick: 1 }
const AT_ONCE_ROUNDS: Record<Size, number> = { full: 5, quick: 1 }
const AT_ONCE: Record<Size, readonly AtOnceCase[]> = {
  full: [
    { ending: 1, nodes: 20, holders: 10, gateways: 3, before: 0 },
    { ending: 10, nodes: 20, holders: 10, gateways: 3, before: 0 },
    { ending: 100, nodes: 200, holders: 10, gateways: 3, before: 0 },
    { ending: 500, nodes: 5000, holders: 10, gateways: 3, before: 0 },
    { ending: 500, nodes: 5000, holders: 10, gateways: 3, before: 200 },
    { ending: 800, whole: 200, nodes: 9800, holders: 10, gateways: 3, before: 0 },
    { ending: 100, nodes: 200, holders: 10, gateways: 1, before: 0 },
    { ending: 100, nodes: 200, holders: 10, gateways: 10, before: 0 },
    { ending: 100, nodes: 200, holders: 1000, gateways: 3, before: 0 },
    { ending: 100, nodes: 200, holders: 5000, gateways: 3, before: 0 }
  ],
  quick: [{ ending: 10, nodes: 20, holders: 10, gateways: 3, before: 0 }]
}

export const SECTIONS = {
  hooks: {
    title: 'Hooks',
    how: 'A rolling update of 10 pods behind 2 gateways at 400 requests a second. Every arm and round has a world of its own; the arms take turns.',
    async run(size, tell) {
      const run = (arm: HookArm, round: number) => hookRun(arm, round)
      const runs = await inTurns(HOOK_ARMS, HOOK_ROUNDS[size], run, tell)
      return runs.map(([arm, rounds]): Row => {
        const result = hookResult(arm, rounds)
        return {
          arm,
          requests: result.requests,
          'failed (each round)': result.failed.join(', '),
          'hook p50 ms': result.hookMs.p50,
          'hook max ms': result.hookMs.max,
          'rollout p50 ms': result.rolloutMs.p50,
          'last request p50 ms': result.lastRequestMs.p50,
          'last request max ms': result.lastRequestMs.max
        }
      })
    }
  },
  lost: {
    title: 'Requests lost per 1,000 pods ended',
    how: 'Two rolling updates of 10 pods, one after the other, at 100 requests a second. 2 % are uploads that take 0.5 to 2 s, and 2 % are websockets that are open for 0.5 to 3 s. 0.5 % are answers that take 100 to 800 ms. One of the 2 gateways is behind: its workers apply each write up to 500 ms late. At SIGTERM the app closes its websockets with 1001 and drops the requests that it has accepted. The arms take turns. A request times out after 15 s: on a starved machine the stand-ins cause that, and such a round shows nothing.',
    async run(size, tell) {
      const arms = HOOK_ARMS.filter(name => name !== 'sleep-15')
      const run = (arm: HookArm, round: number) => hookRun(arm, round, HARD)
      const runs = await inTurns(arms, LOST_ROUNDS[size], run, tell)
      return runs.map(([arm, rounds]) => lostRow(arm, rounds))
    }
  },
  overhead: {
    title: 'Agent overhead',
    how: 'One drain after the other, nothing in flight, 3 gateways. Between two drains the benchmark itself makes one put to each gateway, over kept connections. These are the round trips that every proof needs. An exec hook comes 34 ms after the deletion or later (measured on a real kubelet). At 0 ms it overtakes the event of the deletion, whose way from the stand-in is in the time then. Of the rounds, which take turns, the one with the median ratio of p99 is shown: that of one round is three drains of 300.',
    async run(size, tell) {
      const run = (hookAfterMs: number) => overhead(DRAINS[size], hookAfterMs)
      const tellOf = (step: string) => tell(`${step} ms from the deletion to the hook`)
      const rounds = await inTurns([0, 10], OVERHEAD_ROUNDS[size], run, tellOf)
      return rounds.map(([hookAfterMs, results]): Row => {
        const { roundTripMs, ackMs, ratio } = middle(results, ({ ratio }) => ratio.p99)
        return {
          'hook after the deletion, ms': hookAfterMs,
          drains: ackMs.n,
          'round trips p50 ms': roundTripMs.p50,
          'p99 ms': roundTripMs.p99,
          'ack p50 ms': ackMs.p50,
          'ack p99 ms': ackMs.p99,
          'ratio p50': ratio.p50,
          'ratio p99': ratio.p99,
          'ratios of p99': sorted(results.map(({ ratio }) => ratio.p99)).join(', ')
        }
      })
    }
  },
  'at-once': {
    title: 'Pods that end at once',
    how: 'All are deleted in one moment, and each one then calls its hook, over plain sockets from a process of their own. Every case has a new agent, which has just started, or has drained the stated number of pods before. The round with the median p99 is shown.',
    async run(size, tell) {
      const rows: Row[] = []
      for (const what of AT_ONCE[size]) {
        const rounds = []
        for (let round = 1; round <= AT_ONCE_ROUNDS[size]; round += 1) {
          tell(`${what.ending} of ${what.nodes} nodes, ${what.holders} holders, ${what.gateways} gateways`)
          rounds.push(await atOnce(what))
        }
        const result = middle(rounds, ({ hookMs }) => hookMs.p99)
        rows.push({
          ending: what.ending,
          'and whole workloads': what.whole ?? 0,
          'of nodes': what.nodes,
          'other holders': what.holders,
          gateways: what.gateways,
          'drained before': what.before,
          'hook p50 ms': result.hookMs.p50,
          'hook p99 ms': result.hookMs.p99,
          'p99 of the rounds': inOrder(rounds.map(({ hookMs }) => hookMs.p99)),
          'Admin writes': result.adminWrites,
          'puts per gateway': result.barrierPuts,
          'polls per gateway': result.barrierPolls,
          'agent CPU ms': result.agentCpuMs,
          answers: Object.entries(result.answers)
            .map(([answer, count]) => `${count} ${answer}`)
            .join(', ')
        })
      }
      return rows
    }
  },
  excess: {
    title: 'Excess',
    how: 'What users feel: from the later of the hook’s arrival and the end of the pod’s last request to the agent’s answer. Rolling updates of 10 pods behind 3 gateways at 100 requests a second, 0.5 % of which take 100 to 800 ms; a replacement is there first. Then a scale-down to 2, in which no pod starts. Bare trips: a put to all gateways at once, under the same load.',
    async run(size, tell) {
      const rows: Row[] = []
      for (const one of EXCESS) {
        tell(`${one.mode}, ${one.gateways}`)
        const { requests, failed, updateMs, downMs, tripMs } = await excess(one, EXCESS_ROLLOUTS[size])
        rows.push({
          ...one,
          failed: `${failed} of ${requests}`,
          'update p50 ms': updateMs.p50,
          'update p99 ms': updateMs.p99,
          'scale-down p50 ms': downMs.p50,
          'scale-down p99 ms': downMs.p99,
          'bare trips p50 ms': tripMs.p50,
          'p50 in bare trips': ratio(downMs.p50, tripMs.p50)
        })
      }
      return rows
    }
  },
  watch: {
    title: 'Pods that are watched',
    how: 'Pods of 10 kB, half of it managedFields, by WatchList over TLS from the stand-in for the API server. The agent is a process of its own, with the account of a pod. `bytes alone`: a client that reads the same bytes and does not parse them. CPU: at 1000 irrelevant changes a second. Event to barrier: at 200 such changes a second, while a pod ends every 100 ms, until the last of 3 gateways has sealed it. At the end the connection to the API server dies silently. The sizes take turns. The round with the median RSS is shown for each, because the slack of the heap differs from start to start.',
    async run(size, tell) {
      const rounds = await inTurns(PODS[size], WATCH_ROUNDS[size], watchPods, step => tell(`${step} pods`))
      const rows: Row[] = []
      let before: WatchResult | undefined
      for (const [, results] of rounds) {
        const result = middle(results, ({ rssMb }) => rssMb)
        rows.push({
          pods: result.pods,
          'bytes of one': result.podBytes,
          'bytes alone ms': result.floorMs,
          'sync ms': result.syncMs,
          'RSS MB': result.rssMb,
          'RSS of the rounds': inOrder(results.map(({ rssMb }) => rssMb)),
          'peak MB': result.peakMb,
          'kB each further pod': before ? perPod(before, result) : '–',
          'longest stall of all ms': Math.max(...results.map(({ stallMs }) => stallMs)),
          'CPU ms per 1000 events': result.cpuPer1000EventsMs,
          'event to barrier p50 ms': result.actionMs.p50,
          'event to barrier p99 ms': result.actionMs.p99,
          'p99 of the rounds': inOrder(results.map(({ actionMs }) => actionMs.p99)),
          'half-open noticed ms': result.halfOpenMs
        })
        before = result
      }
      return rows
    }
  }
} as const satisfies Record<string, Section>

/** Measures every case once a round. Returns the results of each case. */
async function inTurns<Case, Result>(
  cases: readonly Case[],
  rounds: number,
  measure: (one: Case, round: number) => Promise<Result>,
  tell: (step: string) => void
): Promise<readonly (readonly [Case, readonly Result[]])[]> {
  const all = cases.map(one => [one, [] as Result[]] as const)
  for (let round = 1; round <= rounds; round += 1) {
    for (const [one, results] of all) {
      tell(`round ${round}: ${String(one)}`)
      results.push(await measure(one, round))
    }
  }
  return all
}

/** Returns the result whose `figure` is the median. */
const middle = <T>(results: readonly T[], figure: (result: T) => number): T =>
  results.toSorted((a, b) => figure(a) - figure(b))[Math.floor(results.length / 2)]!

const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b)

const inOrder = (values: readonly number[]): string =>
  sorted(values)
    .map(value => Math.round(value))
    .join(', ')

const perPod = (fewer: WatchResult, more: WatchResult): number =>
  Math.round(((more.rssMb - fewer.rssMb) * 10_240) / (more.pods - fewer.pods)) / 10

export type SectionName = keyof typeof SECTIONS
