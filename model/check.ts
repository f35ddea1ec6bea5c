import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { availableParallelism, tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/**
 * Checks the models of the guarantee with spin: every part must hold, and every deliberately broken variant
 * must fail, otherwise the models prove nothing. Ends with `model: N passed, N failed`.
 */
interface Run {
  what: string
  flags: readonly string[]
  holds: boolean
  /** Default `barrier`. */
  model?: 'word' | 'successors' | 'knowledge'
}

/** A broken variant of `successors`; one worker and an unchanging place are enough to detect it. */
const caught = (what: string, ...flags: readonly string[]): Run => ({
  what,
  flags: ['WORKERS=1', 'CHANGES=0', ...flags],
  holds: false,
  model: 'successors'
})

const wrongKnowledge = (what: string, flag: string): Run => ({
  what,
  flags: [flag],
  holds: false,
  model: 'knowledge'
})

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
  { what: 'the word: a standby', flags: ['STANDBY'], holds: true, model: 'word' },
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
  },
  {
    what: 'W5: a standby is another choice',
    flags: ['STANDBY', 'ANY_STANDING'],
    holds: false,
    model: 'word'
  },
  { what: 'successors: a place that changes', flags: ['WORKERS=1'], holds: true, model: 'successors' },
  { what: 'successors: two workers', flags: ['CHANGES=0'], holds: true, model: 'successors' },
  {
    what: 'successors: two agents',
    flags: ['WORKERS=1', 'CHANGES=0', 'TWIN'],
    holds: true,
    model: 'successors'
  },
  {
    what: 'successors: a node that health checks reject',
    flags: ['WORKERS=1', 'CHECKS'],
    holds: true,
    model: 'successors'
  },
  caught('a successor can get its ack at all', 'REACHED'),
  caught('S1: a successor is not counted', 'NOT_COUNTED'),
  caught('S1: no second look for a successor', 'NO_REREAD'),
  caught('S2: the chain is not followed', 'UNCHAINED'),
  caught('S2: a successor that ends is not chosen', 'ENDING_UNUSED'),
  caught('S3: the word leaves out places that were taken over', 'OWN_PLACES'),
  caught('S4: the tag does not cover the successors', 'UNTAGGED', 'TWIN'),
  caught('S4: a word from before the successors changed', 'NO_CHANGE', 'TWIN'),
  caught('S5: successors are named once', 'NAMED_ONCE', 'LATER'),
  caught('S5: none is named while none is Ready', 'DROPPED'),
  {
    what: 'S6: the share of a denied node waits for the free ones',
    flags: ['WORKERS=1', 'UNSHARED'],
    holds: false,
    model: 'successors'
  },
  caught('S7: a node that health checks reject is a choice', 'CHECKS', 'UNHEALTHY'),
  { what: 'knowledge: two agents, late or blind', flags: [], holds: true, model: 'knowledge' },
  wrongKnowledge('knowledge removes an entry at all', 'REACHED'),
  wrongKnowledge('K1: a removal is forgotten', 'NO_NOTE'),
  wrongKnowledge('K2: the last put names', 'OLD_NAMES'),
  wrongKnowledge('K3: a blind agent renews', 'RENEWS_BLIND'),
  wrongKnowledge('K4: a blind agent removes', 'BLIND_DELETES'),
  wrongKnowledge('K5: the role of the moment', 'NOW_ROLE'),
  wrongKnowledge('K6: a successor is an address', 'BY_ADDRESS')
]

const path = (model: string) => fileURLToPath(new URL(`./${model}.pml`, import.meta.url))

/** The most CPU time of one step, in seconds: the same on a busy machine. */
const CPU_SECONDS = 120

/** The result line of the search; throws if it did not end by itself. */
async function search(model: string, flags: readonly string[], dir: string): Promise<string> {
  const run = async (command: string, args: string[]) => {
    const limited = ['-c', `ulimit -t ${CPU_SECONDS} && exec "$@"`, 'sh', command, ...args]
    return (await promisify(execFile)('sh', limited, { cwd: dir })).stdout
  }
  await run('spin', [...flags.map(flag => `-D${flag}`), '-a', path(model)])
  await run('cc', ['-O2', '-DSAFETY', '-DCOLLAPSE', '-DVECTORSZ=2048', '-DMEMLIM=2000', '-o', 'pan', 'pan.c'])
  return await run(join(dir, 'pan'), ['-m200000'])
}

/** Whether the model behaved as it must, and the reason if not. */
async function check({ flags, holds, model = 'barrier' }: Run): Promise<string | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'barrier-model-'))
  try {
    const said = await search(model, flags, dir)
    const errors = /errors: (\d+)/.exec(said)?.[1]
    if (errors === undefined || /max search depth too small|out of memory/.test(said))
      return 'the search was not complete'
    if (holds) return errors === '0' ? undefined : (/pan:1: (.*)/.exec(said)?.[1] ?? 'it does not hold')
    return /assertion violated/.test(said) ? undefined : 'it was not caught'
  } catch (error) {
    // The shell's exit status for a program that it cannot find.
    const missing = error instanceof Error && 'code' in error && error.code === 127
    return missing ? 'spin or cc is missing: apt-get install spin gcc libc6-dev' : String(error)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

let failed = 0
const waiting = [...RUNS]
const lane = async () => {
  for (let run = waiting.shift(); run; run = waiting.shift()) {
    const began = performance.now()
    const why = await check(run)
    if (why !== undefined) failed += 1
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    const claim = run.holds ? 'holds' : 'is caught'
    console.log(
      `${why === undefined ? 'ok    ' : 'FAILED'} ${run.what}: ${claim} (${seconds} s)${why ? `: ${why}` : ''}`
    )
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, lane))
console.log(`model: ${RUNS.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
