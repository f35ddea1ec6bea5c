import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import type { Options } from './options.ts'
import { play } from './play.ts'
import { describeScenario, scenarios, type Scenario } from './scenario.ts'

/** The result of one run. */
export interface Outcome {
  readonly index: number
  readonly ms: number
  /** The faults, as `mode / moment / fault`. */
  readonly cells: readonly string[]
  readonly failure?: {
    readonly why: string
    readonly scenario: string
    /** The path after shrinking, with which `--path` replays exactly that scenario. */
    readonly path: string
  }
}

/**
 * Shrinking plays smaller scenarios, and stops after this time, in ms. The first play has no limit, because it may be slow on a
 * busy machine, and every wait of a play has its own limit.
 */
const SHRINK_MS = 180_000

/** Plays run `path` of a seed (`17`, or `17:0:3` after shrinking), and shrinks it if it fails. */
export async function playRun({
  seed,
  path,
  only,
  shrinks,
  knownGaps,
  log
}: Pick<Options, 'seed' | 'only' | 'shrinks' | 'knownGaps' | 'log'> & {
  readonly path: string
}): Promise<Outcome> {
  const began = performance.now()
  let drawn: Scenario | undefined
  let kept = 0
  let shrinksUntil = Infinity
  const keep =
    log === undefined ? undefined : (lines: string) => keepLines(log, `${path}-${kept++}.log`, lines)
  const property = fc.asyncProperty(scenarios(only, knownGaps), async scenario => {
    // After the limit, the remaining scenarios count as passed. So the smallest failure until then is reported.
    if (performance.now() > shrinksUntil) return
    drawn ??= scenario
    // Another process may have taken a port that was free before. This is no failure of the agent, so the scenario is played again.
    await play(scenario, keep)
      .catch((error: unknown) => {
        if (!isPortTaken(error)) throw error
        return play(scenario, keep)
      })
      .catch((error: unknown) => {
        shrinksUntil = Math.min(shrinksUntil, performance.now() + SHRINK_MS)
        throw error
      })
  })
  const { failed, counterexample, counterexamplePath, errorInstance } = await fc.check(property, {
    seed,
    path,
    numRuns: 1,
    endOnFailure: !shrinks
  })
  const outcome = {
    index: Number(path.split(':')[0]),
    ms: performance.now() - began,
    cells: (drawn?.breaks ?? []).map(({ fault, moment }) => `${drawn?.mode} / ${moment} / ${fault}`)
  }
  if (!failed) return outcome
  const [scenario] = counterexample ?? []
  const why = errorInstance instanceof Error ? errorInstance : new Error(String(errorInstance))
  return {
    ...outcome,
    failure: {
      // A violation needs no stack. Any other error is a bug of the suite, and its stack helps.
      why: why.name === 'Error' ? why.message : String(why.stack),
      scenario: scenario ? describeScenario(scenario) : 'interrupted',
      path: counterexamplePath ?? path
    }
  }
}

function keepLines(folder: string, name: string, lines: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name.replaceAll(':', '_')), lines)
}

const isPortTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
