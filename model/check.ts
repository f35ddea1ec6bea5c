import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Checks the models of the guarantee with spin: every part of it must hold, and every variant that is broken on purpose
 * must be caught, for else the models could not tell. Closes with `model: N passed, N failed`.
 */
interface Run {
  what: string
  flags: readonly string[]
  holds: boolean
  /** Default `barrier`. */
  model?: 'word'
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
  { what: 'a gateway that joined is not asked', flags: ['TRUST_NEW', 'JOIN'], holds: false },
  { what: 'the word: two changes of configuration', flags: ['CHANGES=2'], holds: true, model: 'word' },
  { what: 'the word: an entry that comes again', flags: ['WORKERS=1', 'AGAIN'], holds: true, model: 'word' },
  { what: 'the word: a worker that starts', flags: ['CHANGES=0', 'RESTART'], holds: true, model: 'word' },
  { what: 'the word: a node whose pod does not serve', flags: ['BAD'], holds: true, model: 'word' },
  { what: 'the word: two agents, one address', flags: ['TWIN'], holds: true, model: 'word' },
  { what: 'the word: a seal can be set at all', flags: ['REACHED'], holds: false, model: 'word' },
  { what: 'W1: any generation', flags: ['ANY_GENERATION', 'AGAIN'], holds: false, model: 'word' },
  { what: 'W1: list, then generation', flags: ['LIST_FIRST'], holds: false, model: 'word' },
  { what: 'W1: a word outlives its configuration', flags: ['STALE_WORD'], holds: false, model: 'word' },
  { what: 'W1: a word is void a step too late', flags: ['LATE_VOID'], holds: false, model: 'word' },
  { what: 'W1: a change while the word is made', flags: ['NO_MARK'], holds: false, model: 'word' },
  { what: 'W1: a word outlives its process', flags: ['KEPT_BY_ID', 'RESTART'], holds: false, model: 'word' },
  { what: 'W2: silence agrees', flags: ['SILENCE'], holds: false, model: 'word' },
  { what: 'W3: one worker speaks for all', flags: ['ONE_FOR_ALL'], holds: false, model: 'word' },
  { what: 'W4: a sole place is ignored', flags: ['SOLE_IGNORED'], holds: false, model: 'word' },
  { what: 'W4: nobody looks at the others', flags: ['OTHERS_IGNORED', 'BAD'], holds: false, model: 'word' },
  { what: 'W4: the gateway does not look again', flags: ['UNCHECKED'], holds: false, model: 'word' },
  {
    what: 'W4: the gateway looks at sole places only',
    flags: ['ANY_OTHERS', 'BAD'],
    holds: false,
    model: 'word'
  }
]

const path = (model: string) => fileURLToPath(new URL(`./${model}.pml`, import.meta.url))

/** The last thing the search said; throws when it did not end by itself, or not within two minutes. */
function search(model: string, flags: readonly string[], dir: string): string {
  const run = (command: string, args: string[]) =>
    execFileSync(command, args, { cwd: dir, encoding: 'utf8', timeout: 120_000, stdio: 'pipe' })
  run('spin', [...flags.map(flag => `-D${flag}`), '-a', path(model)])
  run('cc', ['-O2', '-DSAFETY', '-DCOLLAPSE', '-DVECTORSZ=2048', '-DMEMLIM=2000', '-o', 'pan', 'pan.c'])
  return run(join(dir, 'pan'), ['-m200000'])
}

/** Whether the model behaved as it must, and why not. */
function check({ flags, holds, model = 'barrier' }: Run): string | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'barrier-model-'))
  try {
    const said = search(model, flags, dir)
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
