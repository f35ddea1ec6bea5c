import { startRig, type Rig, type RigOptions } from './rig.ts'

/** Starts a rig for one scenario: the options of the describe block, and those of the scenario. */
export type Start = (differs?: RigOptions) => Promise<Rig>

/** How many scenarios run at once: a rig waits most of its time. */
const AT_ONCE = 4

/**
 * Tests of one describe block that run in parallel, each with its own rigs. Use `test(title, scenario)` instead of `it`.
 * After each scenario, the invariants are checked from the records of the stand-ins, and everything is closed.
 */
export function sideBySide(
  defaults: RigOptions = {},
  atOnce = AT_ONCE
): (title: string, scenario: (start: Start) => Promise<void>) => void {
  const scenarios: { readonly play: () => Promise<void>; result: Promise<void> | undefined }[] = []

  before(() => {
    const waiting = [...scenarios]
    const lane = async (): Promise<void> => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        // The test may await this promise only later. Until then, a failure must not count as unhandled.
        promise.catch(() => {})
        next.result = promise
        await next.play().then(resolve, reject)
      }
    }
    for (let i = 0; i < atOnce; i++) void lane()
  })

  return (title, scenario) => {
    const one = { play: () => play(scenario, defaults), result: undefined as Promise<void> | undefined }
    scenarios.push(one)
    it(title, async function () {
      // Waits have bounds of their own, which count only the running time of the process.
      this.timeout(180_000)
      while (!one.result) await new Promise(resolve => setTimeout(resolve, 5))
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
