import { assemble } from '../../agent/start/assemble.ts'
import { systemClock, type Clock } from '../../agent/base/clock.ts'
import type { Config } from '../../agent/config/config.ts'
import type { PodFact, ServiceFact } from '../../agent/rules/drain/facts.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { Loop, LoopSettings } from '../../agent/round/loop.ts'
import type { Holder } from '../../agent/rules/plan/holder.ts'
import { openPorts } from '../../agent/start/run.ts'
import { memoryLog } from './serve.ts'

/** The whole agent with all its real parts, in this process: the parts of `run.ts` without signals and exit codes. */
export interface TestAgent {
  readonly port: number
  /** The port of the dashboard and the metrics. */
  readonly pagePort: number
  readonly loop: Loop
  /** Its log, by line. */
  readonly lines: readonly Record<string, unknown>[]
  /** Whether the agent considers this gateway Ready; `undefined` if it knows no gateway of that name. */
  gatewayReady(name: string): boolean | undefined
  /** Why addresses do not count as one gateway each; empty if all do. */
  doubts(): readonly string[]
  /** The pod with this address, as its watch knows it. */
  pod(ip: string): PodFact | undefined
  /** Whether its watch has seen a pod with this address. */
  knows(ip: string): boolean
  /** A holder as its inventory has it. */
  holder(key: string): Holder | undefined
  /** A Service, as its watch knows it. */
  service(namespace: string, name: string): ServiceFact | undefined
  /** How many nodes the agent's inventory has for a holder. */
  nodes(holder: string): number
  /** When the listing behind its inventory began. */
  readAt(): number | undefined
  /** The reasons why it is not ready; empty if it is. */
  missing(): readonly string[]
  /** What the dashboard shows. */
  state(): Promise<Snapshot>
  metrics(): Promise<string>
  readonly closed: boolean
  /** Refuses the held hooks and closes everything, as after SIGTERM when the time for held hooks is over; or tells nobody, as after SIGKILL. */
  close(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Settings of the loop, and how often the holders are listed again without a reason. */
export type AgentDiffers = Partial<LoopSettings> & { readonly inventoryEveryMs?: number }

const INVENTORY_EVERY_MS = 1000
/** How often the holders are listed again during a drain, in ms. */
const GUARD_EVERY_MS = 300

export async function startAgent(
  config: Config,
  { inventoryEveryMs = INVENTORY_EVERY_MS, ...differs }: AgentDiffers = {},
  clock: Clock = systemClock
): Promise<TestAgent> {
  const { log, lines } = memoryLog()
  const settings = { guardEveryMs: GUARD_EVERY_MS, ...differs }
  const parts = assemble({
    config,
    version: 'test',
    clock,
    log,
    settings,
    inventoryEveryMs
  })
  const { slots, loop, sources } = parts
  const ports = await openPorts(config.serve, parts)
  const page = (path: string) => fetch(`http://127.0.0.1:${ports.pagePort}${path}`)
  let closed = false
  return {
    port: ports.port,
    pagePort: ports.pagePort,
    loop,
    lines,
    pod: ip => loop.holds.findByIp(ip)[0],
    knows: ip => loop.holds.findByIp(ip).length > 0,
    service: (namespace, name) => sources.cluster.services.byName(namespace, name),
    holder: key => sources.inventory.holders().get(key),
    gatewayReady: name =>
      sources.cluster.gateways().find(gateway => gateway.name === `apisix/${name}`)?.ready,
    doubts: () => sources.cluster.gateways().flatMap(({ id }) => sources.barrier?.doubt(id) || []),
    nodes: holder => sources.inventory.holders().get(holder)?.nodes.length ?? 0,
    readAt: () => sources.inventory.readAt(),
    state: async () => (await (await page('/api/state')).json()) as Snapshot,
    metrics: async () => (await page('/metrics')).text(),
    missing: () => parts.missing().map(({ part, why }) => `${part}: ${why}`),
    get closed() {
      return closed
    },
    async close(signal = 'SIGTERM') {
      if (closed) return
      closed = true
      slots.releaseAll()
      if (signal === 'SIGTERM') await sources.barrier?.handOver(AbortSignal.timeout(2000)).catch(() => {})
      await ports.close()
      await parts.stop()
    }
  }
}
