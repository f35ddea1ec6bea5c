import type { BarrierKeeper } from '../../gateway/barrier/barrier.ts'
import type { Probe } from './probe.ts'
import type { Inventory } from '../../gateway/inventory/inventory.ts'
import type { ModeWatch } from '../../gateway/inventory/mode-watch.ts'
import type { Writer } from '../../gateway/write/writer.ts'
import type { Leader } from '../../kubernetes/lead/elector.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'

/** The parts that do I/O. Each has its own cache, which a round reads without waiting, so nothing slow can delay it. */
export interface Sources {
  readonly cluster: Cluster
  readonly inventory: Inventory
  readonly writer: Writer
  /** Absent if the Control API is off. */
  readonly probe: Probe | undefined
  /** The mode of APISIX, which decides whether anything may be written. */
  readonly mode: ModeWatch
  /** Absent if no barrier is configured. */
  readonly barrier: BarrierKeeper | undefined
  /** Whether this agent leads: some work is for only one of several agents. */
  readonly leader: Leader
}
