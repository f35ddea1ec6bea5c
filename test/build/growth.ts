import { createContext, Script } from 'node:vm'
import * as fc from 'fast-check'

/** In ms by the wall clock. Only a parser that needs exponential time takes so long, on any machine. */
const NEVER_MS = 5000
/** CPU time that is too short to compare, in µs. */
const SHORT_US = 2000
/** The input grows by this factor. Linear: 4 times the CPU time; quadratic: 16 times. */
const FACTOR = 4
/** The bound between linear and quadratic growth. */
const MOST = 8
const TRIES = 5

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

/**
 * Runs code on an input of size `n` and of size 4n, in CPU time of this thread.
 *
 * @returns by which factor the time grew; 4 (linear) if both are too short to compare
 * @throws Error if a run does not end
 */
export function growthOf(make: (size: number) => () => void, size: number): number {
  const [small, large] = [make(size), make(size * FACTOR)]
  let [least, most] = [Infinity, Infinity]
  // The shortest round of each size counts, because the compiler or a busy machine may slow down any round.
  for (let i = 0; i < TRIES; i++) {
    least = Math.min(least, cpuOf(small))
    most = Math.min(most, cpuOf(large))
    if (most < SHORT_US) return FACTOR
  }
  return most / Math.max(least, 1)
}

/** @throws Error if the time grows faster than the input */
export function mustBeLinear(make: (size: number) => () => void, size: number, what = ''): void {
  const growth = growthOf(make, size)
  if (growth > MOST)
    throw new Error(`input 4 times as long took ${growth.toFixed(1)} times as long ${what}`.trim())
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
