import { until } from './apisix.ts'
import { startRig, type Rig, type RigOptions } from './rig.ts'
import { stalledMs } from './stall.ts'

/** Starts a rig for one scenario: the options of the describe block, and those of the scenario. */
export type Start = (differs?: RigOptions) => Promise<Rig>

/** How many scenarios run at once: a rig waits most of its time. */
const AT_ONCE = 4

/** Whether this process could not run for most of the last second. */
const isStarved = (now = performance.now()) => stalledMs(now - 1000, now) > 500

/**
 * Tests of one describe block that run in parallel, each with its own rigs. Use `test(title, scenario)` instead of `it`.
 * After each scenario, the invariants are checked from the records of the stand-ins, and everything is closed.
 */
export function sideBySide(
  defaults: RigOptions = {},
  atOnce = AT_ONCE
): (title: string, scenario: (start: Start) => Promise<void>) => void {
  const scenarios: { readonly play: () => Promise<void>; result?: Promise<void>; isOver?: boolean }[] = []

  before(() => {
    const waiting = [...scenarios]
    const playing = new Set<Promise<void>>()
    const lane = async (): Promise<void> => {
      for (;;) {
        // The agent's limits are real time: on a busy machine, each rig gets more of this process.
        while (playing.size > 0 && isStarved()) await Promise.race(playing)
        const next = waiting.shift()
        if (!next) return
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        // The test may await this promise only later. Until then, a failure must not count as unhandled.
        promise.catch(() => {})
        next.result = promise
        const over = next.play().then(resolve, reject)
        playing.add(over)
        await over
        playing.delete(over)
        next.isOver = true
      }
    }
    for (let i = 0; i < atOnce; i++) void lane()
  })

  return (title, scenario) => {
    const one: (typeof scenarios)[number] = { play: () => play(scenario, defaults) }
    scenarios.push(one)
    it(title, async function () {
      // Mocha's own bound would count time in which this process could not run.
      this.timeout(0)
      await until('the scenario is over', () => one.isOver === true, 180_000)
      await one.result
    })
  }
}

async function play(scenario: (start: Start) => Promise<void>, defaults: RigOptions): Promise<void> {
  const rigs: Rig[] = []
  try {
    await scenario(async (differs = {}) => {
      const rig = await startRig({
        ...defaults,
        ...differs,
        config: { ...defaults.config, ...differs.config }
      })
      rigs.push(rig)
      return rig
    })
    const violations = rigs.flatMap(rig => rig.violations())
    if (violations.length > 0) throw new Error(violations.join('\n'))
  } finally {
    for (const rig of rigs) await rig.close()
  }
}
