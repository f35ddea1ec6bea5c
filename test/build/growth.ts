import { createContext, Script } from 'node:vm'
import * as fc from 'fast-check'

/** In ms by the wall clock. Only a parser that needs exponential time takes so long, on any machine. */
const NEVER_MS = 5000
/** CPU time that is too short to compare, in µs. */
const SHORT_US = 2000
const LONGER = 8
/** Input of LONGER times the size may take this many times as long: 8 is linear, 64 is quadratic, and the caches of a machine are between. */
const MOST = 22
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

/** @throws Error if the CPU time of this thread grows faster than the input, of sizes n and 8n, or if a run does not end */
export function mustBeLinear(make: (size: number) => () => void, size: number, what = ''): void {
  const [short, long] = [make(size), make(size * LONGER)]
  let [least, most] = [Infinity, Infinity]
  // The shortest run of each size counts, because the compiler or a busy machine may slow down any run, and most often the first.
  for (let i = 0; i < TRIES; i++) {
    least = Math.min(least, cpuOf(short), cpuOf(short), cpuOf(short))
    most = Math.min(most, cpuOf(long))
    if (most < SHORT_US || most <= MOST * Math.max(least, 1)) return
  }
  throw new Error(
    `input ${LONGER} times as long took ${(most / Math.max(least, 1)).toFixed(1)} times as long ${what}`.trim()
  )
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
