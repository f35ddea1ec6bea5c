import { endAll, type Ends } from '../../sandbox/ends.ts'
import { startCluster } from './cluster.ts'
import { phase } from './phase.ts'
import { enterSuite } from './shares.ts'
import { imagesOf, stateOf } from './state.ts'
import { startWorld, type World } from './world.ts'

let running: World | undefined

/** Returns the only `World` of this run. The first test of `install.test.ts` installs the agent there. */
export function world(): World {
  if (!running) throw new Error('there is a world only while tests run')
  return running
}

const ends: Ends = []

export const mochaHooks = {
  async beforeAll(this: Mocha.Context) {
    this.timeout(240_000)
    const id = process.env['CLUSTER_STATE']
    if (id === undefined)
      throw new Error('run it with `npm run test:cluster`: it needs namespaces of its own')
    const state = stateOf(Number(id))
    enterSuite(state.name)
    const cluster = await phase('cluster up', () => startCluster(state, [imagesOf(state)]))
    ends.push(() => cluster.stop())
    const made = await phase('gateways up', () => startWorld(cluster))
    ends.push(() => made.stop())
    running = made
  },
  async afterAll(this: Mocha.Context) {
    this.timeout(120_000)
    await phase('cluster down', () => endAll(ends))
  }
}
