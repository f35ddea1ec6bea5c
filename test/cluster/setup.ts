import { startCluster, type Cluster } from './cluster.ts'
import { phase } from './phase.ts'
import { imagesOf, stateOf } from './state.ts'

let running: Cluster | undefined

/** The one cluster of this run. */
export function cluster(): Cluster {
  if (!running) throw new Error('there is a cluster only while tests run')
  return running
}

export const mochaHooks = {
  async beforeAll(this: Mocha.Context) {
    this.timeout(180_000)
    const id = process.env['CLUSTER_STATE']
    if (id === undefined)
      throw new Error('run it with `npm run test:cluster`: it needs namespaces of its own')
    const state = stateOf(Number(id))
    running = await phase('cluster up', () => startCluster(state, [imagesOf(state)]))
  },
  async afterAll(this: Mocha.Context) {
    this.timeout(120_000)
    await phase('cluster down', async () => running?.stop())
  }
}
