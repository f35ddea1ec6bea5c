import type { Drains } from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import type { Plan } from './change.ts'
import type { Holder } from './holder.ts'
import type { PlanSettings, World } from './world.ts'

/** What has to leave which holder now. Looks only at the holders that list an ending pod. */
export declare function plan(world: World, drains: Drains, now: Millis, settings: PlanSettings): Plan

/** The holders as they are after a plan was carried out: a model for tests and for reasoning, nothing is written. */
export declare function applyPlan(holders: Iterable<Holder>, plan: Plan): Holder[]
