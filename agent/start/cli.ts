import { parseArgs } from 'node:util'

/** The options of `plugin values`. */
export interface PluginValuesFlags {
  /** A file, or `-` for standard input. */
  readonly from: string
  /** Absent: the one of the values, or the chart's default. */
  readonly agent: string | undefined
  readonly allow: readonly string[]
  readonly listen: string
  readonly tlsSecret: string
  readonly json: boolean
}

/** A parsed command line. */
type Command =
  | { readonly kind: 'run'; readonly configFile: string | undefined; readonly dryRun: boolean }
  | { readonly kind: 'print-config'; readonly configFile: string | undefined; readonly dryRun: boolean }
  | { readonly kind: 'doctor'; readonly configFile: string | undefined; readonly json: boolean }
  | {
      readonly kind: 'status'
      readonly configFile: string | undefined
      readonly json: boolean
      /** The agent to ask; `undefined`: the one of the configuration, in this pod. */
      readonly url: string | undefined
      readonly tokenFile: string | undefined
    }
  | ({ readonly kind: 'plugin-values' } & PluginValuesFlags)
  | { readonly kind: 'help'; readonly command: Name | undefined }
  | { readonly kind: 'version' }
  | { readonly kind: 'wrong'; readonly problem: string }

/** The exit code for a wrong command line or configuration. */
export const EXIT_WRONG = 2

/** What each command does, and its exit codes above 0. */
const COMMANDS = {
  run: {
    usage: 'apisix-drain [run] --config <file>',
    does: 'runs the agent',
    exits: '1: the agent could not start'
  },
  doctor: {
    usage: 'apisix-drain doctor --config <file>',
    does: 'checks what the agent needs. One line for each finding: ok, warn, FAIL, or skip for what a failed check explains; the line after the arrow says what to change',
    exits: '1: something that is configured does not work; warnings are allowed'
  },
  status: {
    usage: 'apisix-drain status --config <file>',
    does: 'prints the state of the running agent: gateways, pods on the way out, what they wait for',
    exits: '1: an answer is at risk; 2: the agent does not answer'
  },
  plugin: {
    usage: 'helm get values <release> -o yaml | apisix-drain plugin values --from -',
    does: 'prints the values of the official APISIX chart with the plugin merged in',
    exits: '1: something cannot be merged'
  }
}
type Name = keyof typeof COMMANDS
const NAMES = Object.keys(COMMANDS) as Name[]

/** Each option: its commands, its value if it has one, and what it does. */
const OPTIONS = `
run doctor status | config <file> | configuration (YAML); default: the file that APISIX_DRAIN_CONFIG names
run | print-config | print the configuration with every default filled in (secrets not shown), and end
run | dry-run | write nothing to APISIX
doctor status plugin | json | one JSON object instead of lines
status | url <url> | the agent to ask, http://host:port; default: the one of the configuration, in this pod
status | token-file <file> | with --url, the file of the dashboard's token
plugin | from <file> | the output of helm get values <release> -o yaml; - for standard input
plugin | agent <url> | the agents' Service; default: the one of the values, or http://apisix-drain.apisix.svc.cluster.local:8080
plugin | allow <net> | a network that may call the Admin API too, such as 10.0.0.0/8; commas for several
plugin | listen <what> | https (the default), or http as with tls.barrier.enabled=false
plugin | tls-secret <name> | the Secret with the certificate; default: apisix-drain-barrier-tls
${NAMES.join(' ')} | help | of one command, or of all
${NAMES.join(' ')} | version | print it, and end`
  .trim()
  .split('\n')
  .map(line => {
    const [of = '', option = '', does = ''] = line.split(' | ')
    const [name = '', takes] = option.split(' ')
    return { of: of.split(' '), name, option, takes, does }
  })

/** The help of one command, or of all. */
export function helpOf(only?: Name): string {
  const names = only ? [only] : NAMES
  const options = OPTIONS.filter(({ of }) => names.some(name => of.includes(name)))
  const lines = options.map(({ of, option, does }) => {
    const whose = only || of.length === NAMES.length ? '' : `${of.join(', ')}: `
    return `  ${`--${option}`.padEnd(20)}${whose}${does}`
  })
  return `apisix-drain takes ending pods out of Apache APISIX, proves it, and only then answers their preStop hook.

${names.map(name => `  ${COMMANDS[name].usage}\n      ${COMMANDS[name].does}`).join('\n')}

${lines.join('\n')}

Exit codes: 0: all is well; 2: wrong command line or configuration
${names.map(name => `  ${name}: ${COMMANDS[name].exits}`).join('\n')}
Every setting: docs/config.md
`
}

/** Arguments (without node and script) to a command. Never throws: a wrong command line is a command too. */
export function parseCommand(argv: readonly string[]): Command {
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      OPTIONS.map(({ name, takes }) => [
        name,
        { type: takes ? ('string' as const) : ('boolean' as const), ...(name === 'help' && { short: 'h' }) }
      ])
    ),
    allowPositionals: true,
    strict: false,
    tokens: true
  })
  const wrong = (problem: string): Command => ({ kind: 'wrong', problem })
  const [command = 'run', ...more] = positionals
  const known = NAMES.find(name => name === command)
  for (const token of tokens) {
    const problem = token.kind === 'option' && optionProblem(token, known)
    if (problem) return wrong(problem)
  }
  if (!known) return wrong(unknown('command', command, NAMES))
  if (values['help']) return { kind: 'help', command: positionals.length > 0 ? known : undefined }
  if (values['version']) return { kind: 'version' }
  const textOf = (name: string) => (typeof values[name] === 'string' ? values[name] : undefined)
  const json = values['json'] === true
  if (known === 'plugin')
    return more.join(' ') === 'values' ? pluginCommand(textOf, json) : wrong('the command is plugin values')
  if (more.length > 0) return wrong(`"${more.join(' ')}" is too much; a file goes after --config`)
  const configFile = textOf('config')
  if (known === 'status') return statusCommand(textOf, json)
  if (known === 'doctor') return { kind: known, configFile, json }
  return {
    kind: values['print-config'] ? 'print-config' : 'run',
    configFile,
    dryRun: values['dry-run'] === true
  }
}

type TextOf = (name: string) => string | undefined

function pluginCommand(textOf: TextOf, json: boolean): Command {
  const wrong = (problem: string): Command => ({ kind: 'wrong', problem })
  const [from, agent] = [textOf('from'), textOf('agent')]
  if (from === undefined) return wrong(`plugin values needs --from: ${COMMANDS.plugin.usage}`)
  if (agent !== undefined && !/^https?:\/\/[^/]+$/.test(agent))
    return wrong(`--agent takes http://host:port, not "${agent}"`)
  const allow =
    textOf('allow')
      ?.split(',')
      .map(network => network.trim()) ?? []
  const tlsSecret = textOf('tls-secret') ?? 'apisix-drain-barrier-tls'
  return { kind: 'plugin-values', from, agent, allow, listen: textOf('listen') ?? 'https', tlsSecret, json }
}

function statusCommand(textOf: TextOf, json: boolean): Command {
  const [url, tokenFile] = [textOf('url'), textOf('token-file')]
  const wrong = (problem: string): Command => ({ kind: 'wrong', problem })
  if (tokenFile !== undefined && url === undefined) return wrong('--token-file needs --url')
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url))
    return wrong(`--url takes http://host:port, not "${url}"`)
  return { kind: 'status', configFile: textOf('config'), json, url, tokenFile }
}

function optionProblem(
  { name, rawName, value }: { name: string; rawName: string; value: string | undefined },
  command: Name | undefined
): string | undefined {
  const option = OPTIONS.find(known => known.name === name)
  if (!option)
    return unknown(
      'option',
      rawName,
      OPTIONS.map(known => `--${known.name}`)
    )
  if (option.takes && !value) return `${rawName} needs a value`
  if (!option.takes && value !== undefined) return `${rawName} takes no value`
  if (command && !option.of.includes(command)) return `${rawName} belongs to ${option.of.join(', ')}`
  return undefined
}

const unknown = (what: string, word: string, known: readonly string[]): string =>
  `there is no ${what} ${word}; there are ${known.join(', ')}`

/** Problems for a person at a terminal, on stderr. */
export function formatProblems(problems: readonly string[]): string {
  const head =
    problems.length === 1
      ? 'the configuration has a problem:'
      : `the configuration has ${problems.length} problems:`
  return `${head}\n${problems.map(problem => `  - ${problem}`).join('\n')}\n`
}
