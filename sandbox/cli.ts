import { parseArgs } from 'node:util'
import { TRAFFICS, type Traffic } from './load/options.ts'
import { MODES, type SandboxMode } from './owner/start.ts'
import type { Evidence } from './world.ts'

const ON_TIME = ['no-hook', 'sleep-5', 'apisix-drain'] as const
/** The arms for an ingress controller that is later than any sleep, and for one that ends for good. */
const IN_TROUBLE = ['late-sleep-5', 'late-apisix-drain', 'dead-no-hook', 'dead-apisix-drain'] as const
const ARMS = [...ON_TIME, ...IN_TROUBLE]
export type ArmName = (typeof ARMS)[number]
/** Whether the pods of the arm have the hook of apisix-drain. */
export const hasAgent = (name: ArmName): boolean => name.endsWith('apisix-drain')
/** Whether the ingress controller ends for good before the Deployment is updated, twice. */
export const controllerEnds = (name: ArmName): boolean => name.startsWith('dead-')
/** How late the ingress controller of an arm is, in ms, if no other time is given. */
export const lateBy = (name: ArmName): number | undefined => (name.startsWith('late-') ? 7000 : undefined)

export interface RunOptions {
  readonly arms: readonly ArmName[]
  readonly replicas: number
  readonly gateways: number
  readonly workers: number
  /** Requests a second. */
  readonly rate: number
  /** The most requests that a pod serves in a second. */
  readonly podRate?: number | undefined
  readonly traffic: Traffic
  /** How APISIX is run. */
  readonly mode: SandboxMode
  /** How late the ingress controller writes during the rolling update, in ms; by default a random value from 500 to 2000, a stress. */
  readonly lateMs: number | undefined
  /** The evidence that the agent is configured to use. */
  readonly evidence: Evidence
  /** The folder for logs and facts of every arm. */
  readonly keepLogs: string | undefined
  readonly seed: number
  readonly json: boolean
  readonly hold: boolean
  /** The gateways roll at the same time. */
  readonly rolls?: boolean
  /** Ports of 127.0.0.1 in place of addresses in 127/8. */
  readonly ports?: boolean | undefined
}

/** One command, with its options. */
export type Command =
  | { readonly kind: 'run'; readonly options: RunOptions }
  | {
      readonly kind: 'only-apisix'
      readonly proxy: number
      readonly admin: number
      readonly control: number
      readonly workers: number
    }
  | { readonly kind: 'only-kubernetes'; readonly port: number }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problems: readonly string[] }

export const HELP = `The sandbox: Kubernetes, APISIX, pods and users on loopback. No root, no network, no cluster.

  npm run sandbox                              rolling updates under load, with sleeps and with apisix-drain; then a table
  npm run sandbox -- --only apisix             the APISIX stand-in alone
  npm run sandbox -- --only kubernetes         the Kubernetes API stand-in alone

  --arms <a,b>      which arms to run, in this order; each is named by the hook of its pods
                    late-sleep-5, late-apisix-drain: the ingress controller lists a change 7 s late;
                    dead-no-hook, dead-apisix-drain: it stops for good, then two rolling updates
                    (these four; with --late or without an ingress controller, the next three)
                    no-hook, sleep-5, apisix-drain: an ingress controller in good order
  --mode <m>        who writes APISIX's upstreams                                   (etcd-1.8)
                    etcd-1.8    ingress controller 1.8: PUTs an upstream when its endpoints change
                    etcd-2.x    ingress controller 2.x: PUTs what differs, in full syncs
                    standalone  the same controller, no etcd: a whole document to every gateway
                    discovery   nobody: the gateways watch EndpointSlices themselves
                    sync        the agent, for a Service that asks for it; it runs in every arm
  --late <ms>       the ingress controller, or the gateways' discovery, lists a change this much later;
                    the run goes on until it has. The default is a stress: real controllers
                    write after 70 to 340 ms                                 (500 to 2000, drawn)
  --replicas <n>    pods of the Deployment                                          (10)
  --rate <n>        requests a second                                               (400)
  --pod-rate <n>    the most requests that a pod serves in a second; others wait     (no limit)
  --traffic <t>     which requests to send                                          (all)
                    all: GETs and POSTs, a few with answers of 100 to 800 ms, and slow uploads, whose
                    node APISIX picks long before it connects;  no-uploads;  quick: GETs and POSTs only
                    with-websockets: all, and websockets
  --evidence <e>    what the agent is told to use: barrier, our plugin in the gateways; or
                    observed, as if it were not there (slow uploads then fail)      (barrier)
  --gateways <n>    APISIX instances                                                (2)
  --workers <n>     workers of each                                                 (2)
  --seed <n>        for everything drawn at random                                  (1)
  --keep-logs <dir> keep the agent's log, the gateways' access log and what happened to every pod
  --json            one object on stdout; progress goes to stderr
  --ports           ports of 127.0.0.1 in place of addresses in 127/8, and one gateway. This is so without
                    the flag where the system has no such addresses (macOS)
  --hold            leave the last arm running to play with, until Ctrl-C

  with --only apisix:      --proxy <port> (9080)  --admin <port> (9180)  --control <port> (9090)  --workers <n> (4)
  with --only kubernetes:  --port <port> (6443)
                           a port of 0 is picked by the system

Exit codes: 0 an arm with apisix-drain ran and no request failed in it (or --only ended by Ctrl-C), 1 otherwise,
2 wrong command line.
`

const FLAGS = {
  arms: { type: 'string' },
  late: { type: 'string' },
  replicas: { type: 'string' },
  mode: { type: 'string' },
  rate: { type: 'string' },
  'pod-rate': { type: 'string' },
  traffic: { type: 'string' },
  evidence: { type: 'string' },
  'keep-logs': { type: 'string' },
  gateways: { type: 'string' },
  workers: { type: 'string' },
  seed: { type: 'string' },
  json: { type: 'boolean' },
  hold: { type: 'boolean' },
  ports: { type: 'boolean' },
  only: { type: 'string' },
  proxy: { type: 'string' },
  admin: { type: 'string' },
  control: { type: 'string' },
  port: { type: 'string' },
  help: { type: 'boolean', short: 'h' }
} as const
type Flag = keyof typeof FLAGS

const NOT_OF_A_RUN: ReadonlySet<string> = new Set(['proxy', 'admin', 'control', 'port', 'only', 'help'])
const RUN = (Object.keys(FLAGS) as Flag[]).filter(flag => !NOT_OF_A_RUN.has(flag))
/** The flags that are valid with each value of `--only` (`run`: without `--only`). */
const MEANT = {
  run: RUN,
  apisix: ['proxy', 'admin', 'control', 'workers'],
  kubernetes: ['port']
} as const satisfies Record<string, readonly Flag[]>

/** Parses arguments (without node and script) into a command. Never throws; names every problem, not only the first. */
export function parseCommand(argv: readonly string[]): Command {
  const { values, tokens } = parseArgs({
    args: [...argv],
    options: FLAGS,
    allowPositionals: true,
    strict: false,
    tokens: true
  })
  if (values.help) return { kind: 'help' }

  const problems = tokens.flatMap(token => {
    if (token.kind === 'positional') return [`"${token.value}" is not expected: options begin with --`]
    return token.kind === 'option' ? flagProblem(token.name, token.rawName, token.value) : []
  })
  const only = values.only ?? 'run'
  if (only !== 'run' && only !== 'apisix' && only !== 'kubernetes') {
    return wrong([...problems, '--only takes apisix or kubernetes'])
  }
  const meant: readonly Flag[] = MEANT[only]
  for (const name of Object.keys(values)) {
    if (!(name in FLAGS) || name === 'only' || meant.includes(name as Flag)) continue
    problems.push(
      only === 'run'
        ? `--${name} needs --only ${MEANT.kubernetes.includes(name as 'port') ? 'kubernetes' : 'apisix'}`
        : `--${name} has no meaning with --only ${only}: leave it out`
    )
  }

  const whole = (flag: Flag, byDefault: number, min: number, max: number): number => {
    const text = values[flag]
    if (typeof text !== 'string') return byDefault
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= min && value <= max) return value
    problems.push(`--${flag} takes a whole number from ${min} to ${max}, not "${text}"`)
    return byDefault
  }
  const port = (flag: Flag, byDefault: number) => whole(flag, byDefault, 0, 65_535)

  const read: Record<typeof only, () => Command> = {
    apisix: () => ({
      kind: 'only-apisix',
      proxy: port('proxy', 9080),
      admin: port('admin', 9180),
      control: port('control', 9090),
      workers: whole('workers', 4, 1, 64)
    }),
    kubernetes: () => ({ kind: 'only-kubernetes', port: port('port', 6443) }),
    run: () => ({
      kind: 'run',
      options: {
        arms: readArms(values, problems),
        replicas: whole('replicas', 10, 1, 200),
        gateways: whole('gateways', 2, 1, 20),
        workers: whole('workers', 2, 1, 64),
        rate: whole('rate', 400, 1, 10_000),
        podRate: whole('pod-rate', 0, 1, 10_000) || undefined,
        seed: whole('seed', 1, 0, 4_294_967_295),
        traffic: oneOf(TRAFFICS, 'traffic', values, problems),
        mode: oneOf(MODES, 'mode', values, problems),
        lateMs: lateOf(values, whole, problems),
        evidence: oneOf(['barrier', 'observed'], 'evidence', values, problems),
        keepLogs: typeof values['keep-logs'] === 'string' ? values['keep-logs'] : undefined,
        json: values.json === true,
        hold: values.hold === true,
        ports: values.ports === true
      }
    })
  }
  const command = read[only]()
  return problems.length > 0 ? wrong(problems) : command
}

const wrong = (problems: readonly string[]): Command => ({ kind: 'wrong', problems })

function flagProblem(name: string, rawName: string, value: string | undefined): string[] {
  if (!Object.hasOwn(FLAGS, name)) {
    return [`unknown option ${rawName}: see --help`]
  }
  const takesValue = FLAGS[name as Flag].type === 'string'
  if (takesValue && (value === undefined || value === '')) return [`${rawName} needs a value: see --help`]
  if (!takesValue && value !== undefined) return [`${rawName} takes no value: write ${rawName} alone`]
  return []
}

type Given = Readonly<Partial<Record<Flag, string | boolean>>>

/** The value of a flag that takes one of these words; the first one without the flag. */
function oneOf<T extends string>(
  words: readonly [T, ...T[]],
  flag: Flag,
  values: Given,
  problems: string[]
): T {
  const given = values[flag] ?? words[0]
  const word = words.find(one => one === given)
  if (word === undefined) problems.push(`--${flag} takes one of ${words.join(', ')}, not "${given}"`)
  return word ?? words[0]
}

function lateOf(
  { late, mode, arms }: Given,
  whole: (flag: 'late', byDefault: number, min: number, max: number) => number,
  problems: string[]
): number | undefined {
  if (late === undefined) return undefined
  if (mode === 'sync') problems.push('--late needs an ingress controller: --mode sync has none')
  if (typeof arms === 'string' && arms.includes('dead-'))
    problems.push('--late needs an ingress controller that lives: leave out the arms dead-*')
  return whole('late', 0, 0, 600_000)
}

function readArms({ arms: given, mode, late }: Given, problems: string[]): readonly ArmName[] {
  const hasController = mode !== 'discovery' && mode !== 'sync'
  if (typeof given !== 'string') return hasController && late === undefined ? IN_TROUBLE : ON_TIME
  const names = given.split(',').map(name => name.trim())
  const isArm = (name: string): name is ArmName => ARMS.some(arm => arm === name)
  const unknown = names.filter(name => !isArm(name))
  for (const name of unknown) problems.push(`--arms: there is no arm "${name}", only ${ARMS.join(', ')}`)
  const ends = names.find(name => isArm(name) && (controllerEnds(name) || lateBy(name) !== undefined))
  if (ends !== undefined && !hasController)
    problems.push(`--arms ${ends} needs an ingress controller: --mode ${mode} has none`)
  const twice = names.filter((name, i) => names.indexOf(name) !== i)
  for (const name of new Set(twice)) problems.push(`--arms names ${name} twice: once is enough`)
  return names.filter(isArm)
}
