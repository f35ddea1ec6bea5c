import { setTimeout as wait } from 'node:timers/promises'
import { measureStalls, stalledMs } from '../build/stall.ts'
import { playRun } from './lane.ts'
import type { Options } from './options.ts'

/** One of several processes. It plays the runs in its argument, and reports each outcome. */
const { seed, only, lanes, shrinks, knownGaps, log, paths } = JSON.parse(process.argv[2] ?? '') as Pick<
  Options,
  'seed' | 'only' | 'lanes' | 'shrinks' | 'knownGaps' | 'log'
> & { readonly paths: string[] }

/** Whether the machine is too busy for a new run: this worker got no CPU for more than half of the last two seconds. */
const isBusy = () => stalledMs(performance.now() - 2000, performance.now()) > 1000
/** The pause between two starts of runs, in ms, so that `isBusy` sees the cost of one start before the next. */
const APART_MS = 250
const now = { running: 0, nextAt: 0 }

const turn = async () => {
  while (performance.now() < now.nextAt || (now.running > 0 && isBusy())) await wait(20)
  now.nextAt = performance.now() + APART_MS
}

const lane = async () => {
  await turn()
  for (let path = paths.shift(); path !== undefined; path = paths.shift()) {
    now.running += 1
    process.send?.(await playRun({ seed, path, only, shrinks, knownGaps, log }))
    now.running -= 1
    await turn()
  }
}
measureStalls()
const orphaned = () => process.exit(1)
process.once('disconnect', orphaned)
await Promise.all(Array.from({ length: lanes }, lane))
process.off('disconnect', orphaned)
process.disconnect()
// A mutant's open handles must not keep this process alive.
process.exit(0)
