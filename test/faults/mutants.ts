import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { MUTANTS, type FoundByRuns, type FoundByTest, type Mutant } from './mutant-list.ts'
import { playAll, withOwnFolder } from './run.ts'

/**
 * Shows that every check can fail. Each mutant is an agent with one fault, which a few random runs, or one test, must find.
 * Ends with `N passed, N failed`. An argument selects mutants by a part of their name; `--by-tests` those that one test finds, in seconds.
 */
/** The most runs for a mutant. The search ends with the first run that finds it. About every sixth run finds the rarest mutant. */
const RUNS = 96
const LANES = 12
const AT_ONCE = 2
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'))
/** The timeout of the test's suite. */
const TIMEOUT_MS = '10000'
const MUTATE = new URL('mutate.ts', import.meta.url).href

/** Returns why no run or test found the mutant, or `undefined`. `test/unit/faults/mutants.test.ts` shows that the mutant changes code. */
async function missed(mutant: Mutant): Promise<string | undefined> {
  return 'file' in mutant.found
    ? missedByTest(mutant.name, mutant.found)
    : missedByRuns(mutant.name, mutant.found)
}

async function missedByRuns(name: string, { expected, only }: FoundByRuns): Promise<string | undefined> {
  const found = new AbortController()
  const said = new Set<string>()
  await playAll(
    {
      seed: 1,
      runs: RUNS,
      path: undefined,
      only,
      processes: 1,
      lanes: LANES,
      shrinks: false,
      log: undefined,
      knownGaps: false
    },
    ({ failure }) => {
      for (const line of failure?.why.split('\n') ?? []) {
        said.add(line)
        if (expected.test(line)) found.abort()
      }
    },
    { execArgv: ['--import', MUTATE], env: { FAULTS_MUTANT: name }, enough: found.signal }
  )
  if (found.signal.aborted) return undefined
  return `of ${RUNS} runs none said ${expected}, only: ${[...said].join('; ') || 'nothing'}`
}

/** Returns why the test did not find the mutant, or `undefined` if it failed. Other suites show that it passes without the mutant. */
async function missedByTest(name: string, { file, title }: FoundByTest): Promise<string | undefined> {
  const args = ['--import', MUTATE, MOCHA, '--no-config', '--timeout', TIMEOUT_MS, '--exit']
  const report = await withOwnFolder(own => {
    const { promise, resolve } = Promise.withResolvers<string>()
    execFile(
      process.execPath,
      [...args, '--reporter', 'json', '--fgrep', title, file],
      { cwd: ROOT, env: { ...own, FAULTS_MUTANT: name }, maxBuffer: 64 * 1024 * 1024 },
      (_, stdout) => resolve(stdout)
    )
    return promise
  })
  const parsed = JSON.parse(report.slice(report.indexOf('{\n  "stats"'))) as {
    readonly stats: { readonly tests: number }
    readonly failures: readonly { readonly fullTitle: string }[]
  }
  if (parsed.stats.tests === 0) return `${file} has no test of this title: ${title}`
  return parsed.failures.some(({ fullTitle }) => fullTitle.includes(title))
    ? undefined
    : `passed all the same: ${title}`
}

const part = process.argv.slice(2).find(argument => argument !== '--by-tests') ?? ''
const byTests = process.argv.includes('--by-tests')
const waiting = MUTANTS.filter(({ name, found }) => name.includes(part) && (!byTests || 'file' in found))
if (waiting.length === 0) {
  console.error(
    `no mutant has "${part}" in its name; they are:\n${MUTANTS.map(({ name }) => name).join('\n')}`
  )
  process.exit(2)
}
let [passed, failed] = [0, 0]
const lane = async () => {
  for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
    const why = await missed(mutant).catch((error: unknown) => String(error))
    if (why === undefined) passed += 1
    else failed += 1
    console.log(
      `${why === undefined ? 'found ' : 'MISSED'} ${mutant.name}${why === undefined ? '' : `\n       ${why}`}`
    )
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, lane))
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
