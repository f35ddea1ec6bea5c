#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { clean } from './base/read.ts'
import { EXIT_WRONG, formatProblems, helpOf, parseCommand } from './start/cli.ts'
import { loadConfig, printConfig } from './config/load.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Runs the command. Returns the exit code. */
async function main(argv: readonly string[]): Promise<number> {
  const command = parseCommand(argv)
  if (command.kind === 'help') return say(helpOf(command.command))
  if (command.kind === 'version') return say(`${version}\n`)
  if (command.kind === 'wrong') return complain([command.problem], `${command.problem} (see --help)\n`)

  if (command.kind === 'status' && command.url !== undefined) {
    const { otherAgent, status } = await import('./doctor/status-report.ts')
    return status(otherAgent(command.url, command.tokenFile), command.json)
  }

  if (command.kind === 'plugin-values')
    return (await import('./doctor/run-plugin.ts')).pluginValues(version, command)

  const dryRun = 'dryRun' in command && command.dryRun
  const loaded = loadConfig(command.configFile, { dryRun })
  if (!loaded.ok) return complain(loaded.problems, formatProblems(loaded.problems))
  if (command.kind === 'print-config') return say(printConfig(loaded))
  // These modules are imported on demand, because the Kubernetes client alone takes half a second to load.
  if (command.kind === 'doctor')
    return (await import('./doctor/wire-checks.ts')).diagnose(loaded.config, command.json)
  if (command.kind === 'status') {
    const { ownAgent, status } = await import('./doctor/status-report.ts')
    return status(ownAgent(loaded.config), command.json)
  }
  return (await import('./start/run.ts')).run(loaded.config, version)
}

function say(text: string): number {
  process.stdout.write(text)
  return 0
}

function complain(problems: readonly string[], text: string): number {
  report(problems, text)
  return EXIT_WRONG
}

/** Prints the problems. With `--json` it prints one JSON object, so that a script gets JSON even for a failure. */
function report(problems: readonly string[], text: string): void {
  if (process.argv.includes('--json')) process.stdout.write(clean(`${JSON.stringify({ problems })}\n`))
  else process.stderr.write(clean(text))
}

function changeFor({ code }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return ': choose another serve.port, or stop the program that has it'
  if (code === 'EACCES') return ': choose a serve.port above 1023'
  return code === 'EADDRNOTAVAIL' ? ': serve.host must be an address of this machine' : ''
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (err) {
  const why = err instanceof Error ? `${err.message}${changeFor(err)}` : 'unknown error'
  const [command = ''] = process.argv.slice(2)
  const what = /^(doctor|status)$/.test(command) ? `${command} could not finish` : 'could not start'
  report([why], `apisix-drain ${what}: ${why}\n`)
  process.exitCode = 1
}
