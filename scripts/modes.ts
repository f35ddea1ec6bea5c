import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { format, resolveConfig } from 'prettier'
import type { RunOptions } from '../sandbox/cli.ts'
import { MODES } from '../sandbox/owner/start.ts'
import { createProgress } from '../sandbox/progress.ts'
import { runArms } from '../sandbox/run.ts'
import { COLUMNS, modeTable, withModeTable, type Column, type Measured } from './docs/mode-table.ts'

const HELP = `usage: npm run modes -- [options]

The rolling update of the sandbox in every mode: with no hook, with the agent but without the plugin, with both, and with both while the
gateways roll. Prints the table of docs/compatibility.md as Markdown; progress goes to stderr.

  --modes <a,b>   ${MODES.join(', ')} (all)
  --columns <a,b> ${Object.keys(COLUMNS).join(', ')} (the first three)
  --runs <n>      rolling updates for each cell, each with a seed of its own (3)
  --rate <n>      requests a second (150)
  --replicas <n>  pods (6)
  --write         writes the table into docs/compatibility.md
`

const { values } = parseArgs({
  options: {
    modes: { type: 'string', default: MODES.join(',') },
    columns: { type: 'string', default: 'none,observed,barrier' },
    runs: { type: 'string', default: '3' },
    rate: { type: 'string', default: '150' },
    replicas: { type: 'string', default: '6' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' }
  }
})
if (values.help) {
  console.log(HELP)
  process.exit(0)
}
const wrong = (why: string): never => {
  console.error(`${why}\n\n${HELP}`)
  process.exit(2)
}
const whole = (name: 'runs' | 'rate' | 'replicas') =>
  /^[1-9]\d*$/.test(values[name]) ? Number(values[name]) : wrong(`--${name} takes a whole number from 1 on`)
const [runs, rate, replicas] = [whole('runs'), whole('rate'), whole('replicas')]
const asked = values.modes.split(',')
const modes = MODES.filter(mode => asked.includes(mode))
if (modes.length < asked.length) wrong(`--modes takes ${MODES.join(', ')}`)
const columns = (Object.keys(COLUMNS) as Column[]).filter(column =>
  values.columns.split(',').includes(column)
)
if (columns.length < values.columns.split(',').length)
  wrong(`--columns takes ${Object.keys(COLUMNS).join(', ')}`)

const stop = new AbortController()
process.once('SIGINT', () => stop.abort(new Error('ended by SIGINT')))
const progress = createProgress(process.stderr)
const began = performance.now()
const loads: number[] = []

async function measure(mode: RunOptions['mode'], column: Column, seed: number): Promise<Measured> {
  process.stderr.write(`${mode}, ${column}, seed ${seed}\n`)
  const options: RunOptions = {
    arms: [column === 'none' ? 'no-hook' : 'apisix-drain'],
    mode,
    evidence: column === 'observed' ? 'observed' : 'barrier',
    replicas,
    rate,
    seed,
    gateways: 2,
    workers: 2,
    traffic: 'all',
    keepLogs: undefined,
    json: true,
    lateMs: undefined,
    hold: false,
    rolls: column === 'rolled'
  }
  const { details } = await runArms(options, progress, stop.signal)
  loads.push(loadavg()[0] ?? 0)
  const [arm] = details
  if (!arm) throw new Error('nothing was run')
  return arm
}

const cells = new Map<string, Partial<Record<Column, Measured[]>>>()
for (const mode of modes) {
  const by: Partial<Record<Column, Measured[]>> = {}
  for (const column of columns)
    for (let seed = 1; seed <= runs; seed++) (by[column] ??= []).push(await measure(mode, column, seed))
  cells.set(mode, by)
}

const minutes = Math.ceil((performance.now() - began) / 60_000)
const load = `load ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`
const day = new Date().toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' })
const caption =
  `${runs === 1 ? 'One rolling update' : `${runs} rolling updates`} of the sandbox for each cell (\`npm run modes -- ` +
  `--runs ${runs} --rate ${rate} --replicas ${replicas} --write\`, 2 gateways with 2 workers, owners late by 0.5 to 2 s as a stress, slow uploads ` +
  `among the requests), ${day}, ${minutes} minutes on ${availableParallelism()} cores, ${load}. Failed of all requests, and the median ` +
  'and longest hook:'
const table = await format(modeTable(cells, caption), { parser: 'markdown' })
console.log(table)
if (values.write) {
  const path = join(import.meta.dirname, '../docs/compatibility.md')
  const page = withModeTable(readFileSync(path, 'utf8'), table.trim())
  writeFileSync(path, await format(page, { ...(await resolveConfig(path)), filepath: path }))
}
