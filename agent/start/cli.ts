import { parseArgs } from 'node:util'
import { nearest } from '../config/problems.ts'

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
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'wrong'; readonly problem: string }

/** The exit code for a wrong command line or configuration. */
export const EXIT_WRONG = 2

export const HELP = `apisix-drain takes ending pods out of Apache APISIX, proves it, and only then answers their preStop hook.

  apisix-drain [run] --config <file>     run the agent
  apisix-drain doctor --config <file>    check what the agent needs, and say what to change
  apisix-drain status --config <file>    print the state of the running agent: gateways, pods on the way out, what they wait for
  apisix-drain plugin values --from -    print the values of the official APISIX chart with the plugin merged in

  --config <file>   configuration (YAML); default: the file that APISIX_DRAIN_CONFIG names, else the environment alone
  --print-config    print the configuration with every default filled in (secrets not shown), and end
  --dry-run         write nothing to APISIX
  --json            doctor, status: one JSON object instead of lines
  --url <url>       status: the agent to ask, http://host:port; default: the one of the configuration, in this pod
  --token-file <f>  status: with --url, the file of the dashboard's token
  --from <file>     plugin values: the output of helm get values <release> -o yaml; - for standard input
  --agent <url>     plugin values: the agents' Service; default: the one of the values, or http://apisix-drain.apisix.svc.cluster.local:8080
  --allow <net>     plugin values: a network that may call the Admin API too, such as 10.0.0.0/8; commas for several
  --listen <what>   plugin values: https (the default), http as with barrierTLS.enabled=false, or both during an upgrade
  --tls-secret <s>  plugin values: the Secret with the certificate; default: apisix-drain-barrier-tls
  --help, --version

doctor prints one line for each finding: ok, warn, FAIL, or skip for checks that a failed one explains. The line after
the arrow says what to change.

Exit codes: 0  all is well; doctor: no check failed, warnings are allowed
            1  run: the agent could not start; doctor: a check failed; status: an answer is at risk;
               plugin values: something cannot be merged
            2  wrong command line or configuration; status: the agent does not answer
Every setting: docs/config.md
`

const OPTIONS = {
  config: { type: 'string' },
  'print-config': { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  json: { type: 'boolean' },
  url: { type: 'string' },
  'token-file': { type: 'string' },
  from: { type: 'string' },
  agent: { type: 'string' },
  allow: { type: 'string' },
  listen: { type: 'string' },
  'tls-secret': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' }
} as const

const PLUGIN_OPTIONS = ['from', 'agent', 'allow', 'listen', 'tls-secret'] as const

const COMMANDS = ['run', 'doctor', 'status', 'plugin'] as const

/** Arguments (without node and script) to a command. Never throws: a wrong command line is a command too. */
export function parseCommand(argv: readonly string[]): Command {
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options: OPTIONS,
    allowPositionals: true,
    strict: false,
    tokens: true
  })
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const problem = optionProblem(token.name, token.rawName, token.value)
    if (problem) return { kind: 'wrong', problem }
  }
  const [command = 'run', ...more] = positionals
  const known = COMMANDS.find(name => name === command)
  if (!known) return { kind: 'wrong', problem: unknown('command', command, COMMANDS) }
  if (known === 'plugin') return values.help ? { kind: 'help' } : pluginCommand(more, values)
  if (more.length > 0)
    return { kind: 'wrong', problem: `"${more.join(' ')}" is too much; a file goes after --config` }

  if (values.help) return { kind: 'help' }
  if (values.version) return { kind: 'version' }
  const configFile = typeof values.config === 'string' ? values.config : undefined
  const dryRun = values['dry-run'] === true
  const ofPlugin = PLUGIN_OPTIONS.find(name => values[name] !== undefined)
  if (ofPlugin) return { kind: 'wrong', problem: `--${ofPlugin} belongs to plugin values` }
  if (known === 'status') return statusCommand(values)
  if (values.url !== undefined || values['token-file'] !== undefined)
    return { kind: 'wrong', problem: '--url and --token-file belong to status' }
  if (known !== 'run') {
    return values['print-config'] || dryRun
      ? { kind: 'wrong', problem: `${known} takes --config and --json only` }
      : { kind: known, configFile, json: values.json === true }
  }
  if (values.json) return { kind: 'wrong', problem: '--json belongs to doctor and status' }
  return { kind: values['print-config'] ? 'print-config' : 'run', configFile, dryRun }
}

function pluginCommand(
  words: readonly string[],
  values: Readonly<Record<string, string | boolean | undefined>>
): Command {
  const wrong = (problem: string): Command => ({ kind: 'wrong', problem })
  if (words.join(' ') !== 'values') return wrong('the command is plugin values')
  const { from, agent, allow, json, listen = 'https', 'tls-secret': secret, ...others } = values
  const [other] = Object.keys(others)
  if (other !== undefined)
    return wrong('plugin values takes --from, --agent, --allow, --listen, --tls-secret and --json only')
  if (typeof from !== 'string')
    return wrong(
      'plugin values needs --from: helm get values <release> -o yaml | apisix-drain plugin values --from -'
    )
  const url = typeof agent === 'string' ? agent : undefined
  if (url !== undefined && !/^https?:\/\/[^/]+$/.test(url))
    return wrong(`--agent takes http://host:port, not "${url}"`)
  const tlsSecret = typeof secret === 'string' ? secret : 'apisix-drain-barrier-tls'
  const networks = typeof allow === 'string' ? allow.split(',').map(network => network.trim()) : []
  const own = { from, agent: url, allow: networks, listen: String(listen), tlsSecret }
  return { kind: 'plugin-values', ...own, json: json === true }
}

function statusCommand(values: Readonly<Record<string, unknown>>): Command {
  const textOf = (name: string) => (typeof values[name] === 'string' ? values[name] : undefined)
  const [url, tokenFile] = [textOf('url'), textOf('token-file')]
  const wrong = (problem: string): Command => ({ kind: 'wrong', problem })
  if (values['print-config'] || values['dry-run'])
    return wrong('status takes --config, --json, --url and --token-file only')
  if (tokenFile !== undefined && url === undefined) return wrong('--token-file needs --url')
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url))
    return wrong(`--url takes http://host:port, not "${url}"`)
  return {
    kind: 'status',
    configFile: textOf('config'),
    json: values['json'] === true,
    url,
    tokenFile
  }
}

function optionProblem(name: string, rawName: string, value: string | undefined): string | undefined {
  const option = Object.entries(OPTIONS).find(([known]) => known === name)?.[1]
  if (!option)
    return unknown(
      'option',
      rawName,
      Object.keys(OPTIONS).map(known => `--${known}`)
    )
  if (option.type === 'string' && !value) return `${rawName} needs a value`
  if (option.type === 'boolean' && value !== undefined) return `${rawName} takes no value`
  return undefined
}

function unknown(what: string, word: string, known: readonly string[]): string {
  const meant = nearest(word, known)
  return `there is no ${what} ${word}${meant ? `, did you mean ${meant}?` : `; there are ${known.join(', ')}`}`
}

/** Problems for a person at a terminal, on stderr. */
export function formatProblems(problems: readonly string[]): string {
  const head =
    problems.length === 1
      ? 'the configuration has a problem:'
      : `the configuration has ${problems.length} problems:`
  return `${head}\n${problems.map(problem => `  - ${problem}`).join('\n')}\n`
}
