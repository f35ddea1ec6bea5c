/** One measurement in one tree, in a process of its own, so that no tree warms the other. Usage: against-measure.ts <tree> <name> */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as AtOnce from './at-once.ts'
import type * as Overhead from './overhead.ts'
import type { Spread } from './stats.ts'
import type * as Watch from './watch.ts'

/** Figures by name, in ms. */
export type Figures = Readonly<Record<string, number>>

type Bench = (tree: string) => Promise<Figures>

const from = async <Module>(tree: string, file: string): Promise<Module> =>
  (await import(pathToFileURL(resolve(tree, 'test/bench', file)).href)) as Module

const figures = (what: string, { p50, p99 }: Spread): Figures => ({
  [`${what} p50`]: p50,
  [`${what} p99`]: p99
})

/** Each tree brings its own stand-ins. So only the functions of its benchmarks are called, whose form is the same in all revisions. */
export const MEASURES: Readonly<Record<string, Bench>> = {
  async overhead(tree) {
    const { overhead } = await from<typeof Overhead>(tree, 'overhead.ts')
    const { ackMs, roundTripMs, ratio } = await overhead(300, 10)
    return {
      ...figures('ack of an idle pod', ackMs),
      ...figures('bare round trips: the stand-ins alone', roundTripMs),
      'ack p50, in bare round trips of its tree': ratio.p50
    }
  },
  async 'at-once'(tree) {
    const { atOnce } = await from<typeof AtOnce>(tree, 'at-once.ts')
    const { hookMs } = await atOnce({ ending: 500, nodes: 5000, holders: 10, gateways: 3, before: 0 })
    return figures('500 of 5,000 at once', hookMs)
  },
  async watch(tree) {
    const { watchPods } = await from<typeof Watch>(tree, 'watch.ts')
    const { actionMs } = await watchPods(10_000)
    return figures('event to barrier, 10,000 pods,', actionMs)
  }
}

if (import.meta.main) {
  const [, , tree = '', name = ''] = process.argv
  process.send?.(await MEASURES[name]?.(tree))
  process.exit(0)
}
