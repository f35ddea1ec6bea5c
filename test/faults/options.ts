import { parseArgs } from 'node:util'
import { FAULTS } from './faults.ts'
import { MODES, MOMENTS, STRANGERS } from './scenario.ts'

export interface Options {
  readonly seed: number
  readonly runs: number
  /** Plays only this run: `17`, or `17:0:3` after shrinking. */
  readonly path: string | undefined
  readonly only: readonly string[]
  readonly processes: number
  /** How many runs each process plays at once. */
  readonly lanes: number
  /** Also draws scenarios that are known to fail. */
  readonly knownGaps: boolean
  /** Searches for the smallest scenario that fails. */
  readonly shrinks: boolean
  /** A folder for the agents' logs of failed runs. */
  readonly log: string | undefined
}

const HELP = `usage: npm run test:faults -- [options]

Random scenarios: what breaks, when, in which mode. After each, what must always hold is checked.

  --runs <n>       how many (1000)
  --seed <n>       what they are drawn from (1)
  --path <p>       one run alone, as a failure prints it: 17, or 17:0:3 for what it was shrunk to
  --only <a,b>     names of faults (or what is before their colon), modes, moments: nothing else is drawn
  --log <folder>   keeps what the agents of runs that fail had logged, a file for each play
  --known-gaps     also what is known to fail (docs/lab/faults.md)
  --processes <n>  (2)
  --lanes <n>      runs at once in each process (10)

faults   ${Object.keys(FAULTS).join('\n         ')}
moments  ${MOMENTS.join('\n         ')}
others   ${STRANGERS.join('\n         ')}
modes    ${MODES.join('\n         ')}
`

/** Prints the help or the problem of a wrong command line, and then ends the process. */
export function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      runs: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      path: { type: 'string' },
      only: { type: 'string' },
      processes: { type: 'string', default: '2' },
      lanes: { type: 'string', default: '10' },
      log: { type: 'string' },
      'known-gaps': { type: 'boolean', default: false },
      help: { type: 'boolean' }
    }
  })
  const wrong = (why: string): never => {
    console.error(why)
    process.exit(2)
  }
  if (values.help) {
    console.log(HELP)
    process.exit(0)
  }
  const whole = (name: 'runs' | 'seed' | 'processes' | 'lanes') =>
    /^\d+$/.test(values[name]) ? Number(values[name]) : wrong(`--${name} takes a whole number`)
  const only = values.only?.split(',') ?? []
  const known = [...Object.keys(FAULTS), ...MODES, ...MOMENTS, ...STRANGERS]
  for (const part of only)
    if (!known.some(name => name === part || name.startsWith(`${part}:`)))
      wrong(`--only: there is no ${part}`)
  if (values.path !== undefined && !/^\d+(:\d+)*$/.test(values.path)) wrong('--path takes 17 or 17:0:3')
  const count = values.path === undefined ? whole('runs') : 1
  return {
    seed: whole('seed'),
    runs: count,
    path: values.path,
    only,
    processes: Math.max(1, Math.min(whole('processes'), count)),
    lanes: Math.max(1, whole('lanes')),
    knownGaps: values['known-gaps'],
    shrinks: values.path === undefined,
    log: values.log
  }
}
