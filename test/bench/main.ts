import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { arch, availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { AGAINST, against } from './against.ts'
import { limits } from './limits.ts'
import { SECTIONS, type Section, type SectionName, type Size } from './sections.ts'
import { markdown, type Row } from './table.ts'

const NAMES = Object.keys(SECTIONS) as SectionName[]

const HELP = `What apisix-drain costs and saves, measured here and now. Stand-ins for Kubernetes and APISIX, real processes and sockets.

  npm run bench                      everything; about twenty minutes on two cores with nothing else to do
  npm run bench -- --quick           that everything runs, not what it comes to; three minutes

  --only <a,b>    of ${NAMES.join(', ')}
  --json <file>   the same figures as one object
  --docs <file>   the tables, and what they were measured on, as Markdown
  --against <rev> this tree and a revision in turn: the ratios of ${AGAINST.join(', ')} (or of those of --only); 15 minutes
                  gateways before b48c21d7 run no Lua, and answer faster: compare acks in round trips of their own tree
  --rounds <n>    pairs of measurements with --against; 5 without it

Nothing else should run on the machine: look at the ratios within one run, and at the load that is shown with it.
What the plugin costs a request: npm run bench:plugin
Exit status: 0 measured, 1 something failed, 2 wrong use`

const ELSEWHERE = `## Inside the gateway, and beyond

The plugin's cost for a request: \`npm run bench:plugin\`, and on a real APISIX [runs](runs.md). The hook's own cost: [hooks](../hooks.md#measured). Two revisions in turn: \`npm run bench -- --against <revision>\`. Ten times the size: [scaling](scaling.md).`

interface Report {
  readonly measuredAt: string
  readonly size: Size
  readonly machine: Row
  readonly sections: Partial<Record<SectionName, readonly Row[]>>
}

const options = {
  only: { type: 'string' },
  json: { type: 'string' },
  docs: { type: 'string' },
  against: { type: 'string' },
  rounds: { type: 'string', default: '5' },
  quick: { type: 'boolean' },
  help: { type: 'boolean' }
} as const

function wrong(problem: string): never {
  console.error(`${problem}\n\n${HELP}`)
  process.exit(2)
}

function readArguments() {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    return wrong((error as Error).message)
  }
}

const values = readArguments()
if (values.help) {
  console.log(HELP)
  process.exit(0)
}
const possible = values.against === undefined ? NAMES : AGAINST
const wanted = values.only?.split(',') ?? possible
const unknown = wanted.filter(name => !possible.includes(name))
if (unknown.length > 0) wrong(`--only ${unknown.join(', ')}: there is ${possible.join(', ')}`)

const size: Size = values.quick ? 'quick' : 'full'
const machine: Row = {
  cores: availableParallelism(),
  processor: cpus()[0]?.model ?? 'unknown',
  'memory GB': Math.round(totalmem() / 2 ** 30),
  system: `${process.platform} ${release()} ${arch()}`,
  Node: process.version,
  'load before': loadavg()
    .map(load => load.toFixed(1))
    .join(' ')
}
const tell = (step: string) => console.error(`  ${new Date().toISOString().slice(11, 19)} ${step}`)
if (values.against !== undefined) await compare(values.against)
const sections: Partial<Record<SectionName, readonly Row[]>> = {}
for (const name of NAMES.filter(name => wanted.includes(name))) {
  const section: Section = SECTIONS[name]
  console.log(`\n${section.title}\n${section.how}`)
  const rows = await section.run(size, tell)
  console.log(`\n${markdown(rows)}`)
  sections[name] = rows
}
const report: Report = { measuredAt: new Date().toISOString(), size, machine, sections }
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(report, null, 2)}\n`)
if (values.docs !== undefined) await writeFile(values.docs, await formatted(page(report)))

/** Prints the ratios, and ends the process. */
async function compare(revision: string): Promise<never> {
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1)
    wrong(`--rounds ${values.rounds}: give a whole number from 1 on`)
  try {
    const rows = await against({ revision, names: wanted, rounds, tell })
    console.log(`\n${markdown([machine])}\n\n${markdown(rows)}`)
    if (values.json !== undefined)
      await writeFile(values.json, `${JSON.stringify({ machine, rows }, null, 2)}\n`)
    return process.exit(0)
  } catch (error) {
    console.error((error as Error).message)
    return process.exit(1)
  }
}

async function formatted(text: string): Promise<string> {
  const { format, resolveConfig } = await import('prettier')
  return format(text, { ...(await resolveConfig('docs/lab/benchmarks.md')), parser: 'markdown' })
}

/** The commit that was measured, for a reader who compares two pages. */
const revision = () => execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()

function page({ measuredAt, size, machine, sections }: Report): string {
  const parts = NAMES.flatMap(name => {
    const rows = sections[name]
    return rows ? [`## ${SECTIONS[name].title}\n\n${SECTIONS[name].how}\n\n${markdown(rows)}`] : []
  })
  const head = `# Benchmarks\n\nMade by \`npm run bench -- --docs docs/lab/benchmarks.md\` in one run, of ${revision()}, on ${measuredAt.slice(0, 10)}. Absolute times are this machine’s; look at\nthe ratios. The stand-ins for Kubernetes and APISIX run on the same cores as the agent.\n\n${markdown([machine])}`
  const quick =
    size === 'quick' ? ['**A quick run: it shows that everything runs, not what it comes to.**'] : []
  const bounds = limits(sections)
  const own = bounds.length > 0 ? [`## The limits that the project sets itself\n\n${markdown(bounds)}`] : []
  return `${[head, ...quick, ...own, ...parts, ELSEWHERE].join('\n\n')}\n`
}
