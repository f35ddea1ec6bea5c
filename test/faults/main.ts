import { FAULTS } from './faults.ts'
import type { Outcome } from './lane.ts'
import { readOptions } from './options.ts'
import { playAll } from './run.ts'
import { MODES, MOMENTS } from './scenario.ts'

/** `npm run test:faults` plays and checks random scenarios. It ends with `N passed, N failed`. */
const options = readOptions(process.argv.slice(2))
const began = performance.now()
let done = 0

function tell({ index, failure }: Outcome): void {
  done += 1
  if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${options.runs}`)
  if (!failure) return
  const only = options.only.length > 0 ? ` --only '${options.only.join(',')}'` : ''
  const known = options.knownGaps ? ' --known-gaps' : ''
  console.log(`\nrun ${index} FAILED: ${failure.why}\n  ${failure.scenario}`)
  console.log(`  again: npm run test:faults -- --seed ${options.seed} --path ${failure.path}${only}${known}`)
}

const outcomes = await playAll(options, tell)
const failed = outcomes.filter(({ failure }) => failure).length
const cells = new Set(outcomes.flatMap(({ cells }) => cells))
const pairs = new Set([...cells].map(cell => cell.split(' / ').slice(1).join(' / ')))
const faults = Object.keys(FAULTS).length
const seconds = Math.round((performance.now() - began) / 1000)
if (process.stderr.isTTY) process.stderr.write('\r')
console.log(
  `seed ${options.seed}, ${seconds} s: ${pairs.size} of ${faults * MOMENTS.length} pairs of fault and moment, ` +
    `${cells.size} of ${faults * MOMENTS.length * MODES.length} with the mode`
)
console.log(`${outcomes.length - failed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
