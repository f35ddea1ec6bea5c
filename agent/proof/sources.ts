import type { BarrierKeeper } from '../barrier/barrier.ts'
import type { Probe } from './probe.ts'
import type { Survey } from './survey.ts'
import type { Inventory } from '../inventory/inventory.ts'
import type { ModeWatch } from '../inventory/mode-watch.ts'
import type { Writer } from '../write/writer.ts'
import type { Leader } from '../lead/leader.ts'
import type { Cluster } from '../facts/cluster.ts'

/** The parts that do I/O. Each keeps its own cache: reading one never waits, so nothing slow can hold up a round. */
export interface Sources {
  readonly cluster: Cluster
  readonly inventory: Inventory
  readonly writer: Writer
  readonly probe: Probe
  /** What each gateway lists, read now and then; absent where the Control API is not to be read. */
  readonly survey: Survey | undefined
  /** How APISIX is run, which decides whether anything may be written. */
  readonly mode: ModeWatch
  /** Absent where no barrier is configured. */
  readonly barrier: BarrierKeeper | undefined
  /** Asked by parts whose work only one of several agents should do. */
  readonly leader: Leader
}
