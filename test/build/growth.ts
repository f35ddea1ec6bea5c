import { createContext, Script } from 'node:vm'
import * as fc from 'fast-check'

/** In ms by the wall clock. Only a parser that needs exponential time takes so long, on any machine. */
const NEVER_MS = 5000
/** CPU time that is too short to compare, in µs. */
const SHORT_US = 2000
/** Input of twice the size may take this many times as long: 2 is linear, 4 is quadratic. */
const MOST = 3
const SIZES = [1, 2, 4]
const TRIES = 12

const sandbox = createContext({ run: () => {} })
const script = new Script('run()')

/** The CPU time of this thread, in µs: a busy machine does not change it. */
function cpuOf(run: () => void): number {
  sandbox['run'] = run
  const before = process.threadCpuUsage()
  script.runInContext(sandbox, { timeout: NEVER_MS })
  const { user, system } = process.threadCpuUsage(before)
  return user + system
}

/** @throws Error if the CPU time of this thread grows faster than the input, of sizes n, 2n and 4n, or if a run does not end */
export function mustBeLinear(make: (size: number) => () => void, size: number, what = ''): void {
  const runs = SIZES.map(factor => make(size * factor))
  const least = runs.map(() => Infinity)
  let growth = 0
  // The shortest run of each size counts, because the compiler or a busy machine may slow down any run.
  for (let i = 0; i < TRIES; i++) {
    runs.forEach((run, n) => (least[n] = Math.min(least[n] ?? 0, cpuOf(run))))
    const [one = 0, two = 0, four = 0] = least
    if (four < SHORT_US) return
    growth = Math.max(two < SHORT_US ? 0 : two / Math.max(one, 1), four / Math.max(two, 1))
    if (growth <= MOST) return
  }
  throw new Error(`input twice as long took ${growth.toFixed(1)} times as long ${what}`.trim())
}

/** Texts that make a parser backtrack: a beginning, a part that is repeated, and an end that does not fit. */
export const pumped = (words: readonly string[]) => {
  const some = (least: number) =>
    fc.array(fc.constantFrom(...words), { minLength: least, maxLength: 3 }).map(parts => parts.join(''))
  return fc.record({ before: some(0), repeated: some(1), after: some(0) })
}

/** One text of these parts, with about `size` characters. */
export const pump = (
  { before, repeated, after }: { readonly before: string; readonly repeated: string; readonly after: string },
  size: number
): string => before + repeated.repeat(Math.ceil(size / repeated.length)) + after
