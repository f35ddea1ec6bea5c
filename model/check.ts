import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Checks the model of the guarantee with spin: every part of it must hold, and every variant that is broken on purpose
 * must be caught, for else the model could not tell. Closes with `model: N passed, N failed`.
 */
interface Run {
  what: string
  flags: readonly string[]
  holds: boolean
}

const RUNS: readonly Run[] = [
  { what: 'two workers, two connects each', flags: ['CONNECTS=2'], holds: true },
  { what: 'an entry that expires', flags: ['EXPIRY'], holds: true },
  { what: 'a killed worker and its successor', flags: ['WORKERS=1', 'KILL', 'CONNECTS=2'], holds: true },
  { what: 'a gateway that joins', flags: ['WORKERS=1', 'JOIN'], holds: true },
  { what: 'a killed worker, and an entry that expires', flags: ['WORKERS=1', 'KILL', 'EXPIRY'], holds: true },
  { what: 'the ack can be given at all', flags: ['REACHED', 'KILL'], holds: false },
  { what: 'order swapped: look, then count', flags: ['SWAPPED'], holds: false },
  { what: 'no seal', flags: ['NO_SEAL'], holds: false },
  { what: 'no second look at what is in flight', flags: ['NO_REREAD'], holds: false },
  { what: 'no look whether the entry still holds', flags: ['BLIND', 'EXPIRY'], holds: false },
  { what: 'counts not kept per worker', flags: ['RESET_ALL', 'KILL'], holds: false },
  { what: "a killed worker's counts dropped too early", flags: ['EARLY_DROP', 'KILL'], holds: false },
  { what: 'a gateway that joined is not asked', flags: ['TRUST_NEW', 'JOIN'], holds: false }
]

const MODEL = fileURLToPath(new URL('./barrier.pml', import.meta.url))

/** The last thing the search said; throws when it did not end by itself, or not within two minutes. */
function search(flags: readonly string[], dir: string): string {
  const run = (command: string, args: string[]) =>
    execFileSync(command, args, { cwd: dir, encoding: 'utf8', timeout: 120_000, stdio: 'pipe' })
  run('spin', [...flags.map(flag => `-D${flag}`), '-a', MODEL])
  run('cc', ['-O2', '-DSAFETY', '-DCOLLAPSE', '-DVECTORSZ=2048', '-DMEMLIM=2000', '-o', 'pan', 'pan.c'])
  return run(join(dir, 'pan'), ['-m200000'])
}

/** Whether the model behaved as it must, and why not. */
function check({ flags, holds }: Run): string | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'barrier-model-'))
  try {
    const said = search(flags, dir)
    const errors = /errors: (\d+)/.exec(said)?.[1]
    if (errors === undefined || /max search depth too small|out of memory/.test(said))
      return 'the search was not complete'
    if (holds) return errors === '0' ? undefined : (/pan:1: (.*)/.exec(said)?.[1] ?? 'it does not hold')
    return /assertion violated/.test(said) ? undefined : 'it was not caught'
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    return missing ? 'spin or cc is missing: apt-get install spin gcc libc6-dev' : String(error)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

let failed = 0
for (const run of RUNS) {
  const began = performance.now()
  const why = check(run)
  if (why !== undefined) failed += 1
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  const claim = run.holds ? 'holds' : 'is caught'
  console.log(
    `${why === undefined ? 'ok    ' : 'FAILED'} ${run.what}: ${claim} (${seconds} s)${why ? `: ${why}` : ''}`
  )
}
console.log(`model: ${RUNS.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
