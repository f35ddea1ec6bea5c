import type { Server } from 'node:http'
import { until } from '../build/apisix.ts'
import { get } from '../build/load.ts'
import type { TestPod } from '../build/pods.ts'
import { stalledMs } from '../build/stall.ts'
import type { CountingClock } from '../build/counting-clock.ts'
import { HOLDER, isWritten } from './owner.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'

/** The time to converge after the last fault was mended, in ms; enough for a busy machine. */
const CONVERGED_MS = 20_000
/** Twice the ttl, in ms: an entry that no agent removes expires after its ttl, and a busy machine may be late. */
const LIFTED_MS = 30_000
const CLOSED_MS = 10_000

/** Returns all problems that remain after all faults were mended. */
export async function checkOutcome(
  stage: Stage,
  scenario: Scenario,
  staying: readonly Pick<TestPod, 'node' | 'name'>[],
  backup: string | undefined
): Promise<readonly string[]> {
  const { rig } = stage
  const violations: string[] = []
  const check = async (what: () => string, holds: () => boolean, withinMs: number) => {
    await until(what(), holds, withinMs).catch(() => violations.push(what()))
  }
  const wanted = staying.map(({ node }) => node).toSorted()
  const nodes = () =>
    rig
      .nodes(HOLDER)
      .filter(node => node !== backup)
      .toSorted()
  if (isWritten(scenario.mode))
    await check(
      () => `it does not end well: ${nodes().join(' ')} are listed, not ${wanted.join(' ')}`,
      () => nodes().join() === wanted.join(),
      CONVERGED_MS
    )
  else if (rig.writes.length > 0) violations.push(`the agent wrote ${rig.writes.join(', ')}`)
  for (const proxy of stage.proxies) {
    const missing = await unserved(proxy, staying)
    if (missing.length > 0) violations.push(`${proxy} sends nothing to ${missing.join(' ')}`)
  }
  return violations
}

/** Returns the pods that get no request through this gateway. */
async function unserved(proxy: string, pods: readonly Pick<TestPod, 'name'>[]): Promise<readonly string[]> {
  const missing = new Set(pods.map(({ name }) => name))
  const began = performance.now()
  const tookMs = (now: number) => now - began - stalledMs(began, now)
  while (missing.size > 0 && tookMs(performance.now()) < CONVERGED_MS) {
    const answer = await get(`${proxy}/`).catch(() => undefined)
    if (answer?.status === 200) missing.delete(answer.body)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  return [...missing]
}

/** Returns the leaks: entries of pods that are gone, and timers and connections of closed agents. */
export async function checkLeaks(
  { rig, agents }: Stage,
  clocks: readonly CountingClock[]
): Promise<readonly string[]> {
  const violations: string[] = []
  const gateways = rig.gateways.filter(({ running }) => running)
  const entries = () => gateways.reduce((sum, { barrier }) => sum + (barrier?.entries.size ?? 0), 0)
  await until('no entry is left', () => entries() === 0, LIFTED_MS).catch(() =>
    violations.push(`${entries()} barrier entries are left of pods that are gone`)
  )
  const counted = () => gateways.reduce((sum, { barrier }) => sum + (barrier?.inflight.total ?? 0), 0)
  await until('nothing is counted', () => counted() === 0, CLOSED_MS).catch(() =>
    violations.push(`${counted()} requests are counted that are over`)
  )
  for (const agent of agents.splice(0)) await agent.close()
  const servers = [
    rig.admin.listener.server,
    ...gateways.flatMap(({ control, barrierApi }) =>
      [control.listener.server, barrierApi?.listener.server ?? []].flat()
    )
  ]
  let open = Infinity
  const look = async () => {
    const counts = await Promise.all(servers.map(connections))
    open = counts.reduce((sum, count) => sum + count, rig.kubernetes.connectionCount())
  }
  await until('no connection is left', () => (void look(), open === 0), CLOSED_MS).catch(() =>
    violations.push(`${open} connections of agents that are closed are left`)
  )
  const timers = () => clocks.reduce((sum, clock) => sum + clock.pending, 0)
  await until('no timer is left', () => timers() === 0, CLOSED_MS).catch(() =>
    violations.push(`${timers()} timers of agents that are closed are left`)
  )
  return violations
}

const connections = (server: Server): Promise<number> =>
  new Promise(resolve => server.getConnections((error, count) => resolve(error ? 0 : count)))
