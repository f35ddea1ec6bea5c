import type { WorkloadOptions } from './objects/workload.ts'
import { underLoad, type Observed } from './rollout.ts'
import { finish, restart } from './scenario.ts'
import { world } from './setup.ts'
import type { Workload, WorkloadLoad } from './world.ts'

export const REPLICAS = 10
/** The startup time of a real app. Without it, a rollout would measure how fast two cores start ten pods. */
const STARTUP_MS = 3000
/** The load of requests whose answers take a while. */
export const SLOW: WorkloadLoad = { answerMs: 200 }

export interface TenPods {
  /** Changes the pods; resolves when the new ones are available. */
  readonly update: (change: Partial<WorkloadOptions>) => Promise<void>
  readonly restart: () => Promise<void>
  /** Runs `act` under load, and returns the observations. */
  readonly during: (act: () => Promise<void>, load?: WorkloadLoad) => Promise<Observed>
}

/** Runs a workload of ten pods while the tests of the suite run. */
export function tenPods(): TenPods {
  let web: Workload

  before(async function () {
    this.timeout(120_000)
    web = await world().run({
      name: 'web',
      arm: 'none',
      replicas: REPLICAS,
      atTerm: 'exit',
      startupMs: STARTUP_MS
    })
  })
  after(() => web?.remove())

  return {
    async update(change) {
      await web.update(change)
      await finish(web)
    },
    restart: () => restart(web),
    during: (act, load) => underLoad(world(), web, { ends: REPLICAS, act }, load)
  }
}
