import type { BarrierKeeper } from '../confirm/barrier.ts'
import type { Probe } from '../confirm/probe.ts'
import type { Survey } from '../confirm/survey.ts'
import type { Inventory } from '../gateway/inventory.ts'
import type { ModeWatch } from '../gateway/mode-watch.ts'
import type { Writer } from '../gateway/writer.ts'
import type { Leader } from '../lead/leader.ts'
import type { Cluster } from '../watch/cluster.ts'
import type { Sync } from './sync.ts'
import type { Upkeep } from './upkeep.ts'

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
  readonly upkeep: Upkeep
  /** Absent where it is off. */
  readonly sync: Sync | undefined
}
