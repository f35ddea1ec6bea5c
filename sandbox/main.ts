import { HELP, parseCommand, type RunOptions } from './cli.ts'
import { onlyApisix, onlyKubernetes, type Alone } from './only.ts'
import { createProgress } from './progress.ts'
import { jsonReport, succeeded, table } from './report.ts'
import { heldLines, runArms } from './run.ts'

const EXIT_WRONG = 2

/** Ctrl-C and SIGTERM end everything in order. A second signal ends the process at once. */
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(1)
    stop.abort(new Error(`ended by ${signal}`))
  })
}

const stopped = (): Promise<void> => {
  // This timer keeps the process alive. A pending promise does not, and perhaps no stand-in does.
  const alive = setInterval(() => {}, 60_000)
  return new Promise(resolve => {
    const end = () => {
      clearInterval(alive)
      resolve()
    }
    if (stop.signal.aborted) end()
    else stop.signal.addEventListener('abort', end, { once: true })
  })
}

async function serve(starting: Promise<Alone>): Promise<number> {
  const alone = await starting
  console.log(alone.lines.join('\n'))
  await stopped()
  await alone.close()
  return 0
}

async function run(options: RunOptions): Promise<number> {
  const progress = createProgress(options.json ? process.stderr : process.stdout)
  const { details, held } = await runArms(options, progress, stop.signal)
  console.log(options.json ? JSON.stringify(jsonReport(details)) : `\n${table(details)}`)
  if (held) {
    const say = options.json ? console.error : console.log
    say(`\n${heldLines(held).join('\n')}`)
    await stopped()
    await held.world.close()
  }
  return succeeded(details) ? 0 : 1
}

async function main(): Promise<number> {
  const command = parseCommand(process.argv.slice(2))
  if (command.kind === 'help') {
    console.log(HELP)
    return 0
  }
  if (command.kind === 'wrong') {
    console.error(`${command.problems.join('\n')}\nEvery option: npm run sandbox -- --help`)
    return EXIT_WRONG
  }
  if (command.kind === 'only-apisix') return await serve(onlyApisix(command))
  if (command.kind === 'only-kubernetes') return await serve(onlyKubernetes(command))
  return await run(command.options)
}

try {
  process.exitCode = await main()
} catch (error) {
  const why: unknown = stop.signal.aborted ? stop.signal.reason : error
  console.error(why instanceof Error ? why.message : why)
  process.exitCode = 1
}
