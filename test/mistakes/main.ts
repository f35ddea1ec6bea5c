import { parseArgs } from 'node:util'
import { MISTAKES } from './list.ts'
import { faultsOf, MAIN, play } from './play.ts'

const HELP = `usage: npm run mistakes -- [options]

Makes the mistakes of test/mistakes/list.ts with the real commands against stand-ins, and prints what the operator sees.

  --main <file>   the agent/main.ts to run, such as that of an older checkout (this one)
  --only <text>   mistakes whose title has this text
  --brief         one line for each mistake
  --help

Exit codes: 0 every mistake is told with its setting and the change, 1 one is not, 2 wrong command line
`

const options = {
  main: { type: 'string', default: MAIN },
  only: { type: 'string', default: '' },
  brief: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' }
} as const

function parsed() {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    return process.exit(2)
  }
}

const { main, only, brief, help } = parsed()
if (help) {
  console.log(HELP)
  process.exit(0)
}
const chosen = MISTAKES.filter(({ title }) => title.includes(only))
let told = 0
for (const mistake of chosen) {
  const printed = await play(mistake, main)
  const faults = faultsOf(mistake, printed)
  if (faults.length === 0) told += 1
  console.log(`${faults.length === 0 ? 'told' : 'NOT '}  ${mistake.title} (exit ${printed.code})`)
  for (const fault of faults) console.log(`      ${fault}`)
  if (!brief) {
    console.log(`      $ apisix-drain ${mistake.args.join(' ')}`)
    const lines = printed.text.trimEnd().split('\n')
    // The beginning of a long log is enough.
    console.log(
      lines
        .slice(0, 40)
        .map(line => `      | ${line}`)
        .join('\n')
    )
  }
}
console.log(`\n${told} of ${chosen.length} mistakes are told with the setting and the change`)
process.exitCode = told === chosen.length ? 0 : 1
