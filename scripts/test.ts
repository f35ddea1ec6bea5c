/**
 * `npm test` runs every suite: those that need both cores one after another, the others two at a time. Each prints its closing lines
 * (`N passed, N failed`).
 * The whole output goes into a file, and that of a failed suite is also printed at the end.
 * The end names each suite that this machine cannot run, with the missing packages. With CI=true such a suite is a failure.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { closingLinesOf, failuresOf } from './tests/failures.ts'

/** The whole output of each suite, `<suite>.log`. */
const LOGS = join(import.meta.dirname, '../node_modules/.cache/tests')

interface Suite {
  readonly name: string
  readonly what: string
  /** The duration on two idle cores, in s, once everything is built. */
  readonly seconds: number
  /** It needs one core. */
  readonly isSmall?: true
  /** Each command is one step; the suite fails with the first step that fails. */
  readonly steps: readonly (readonly string[])[]
  readonly needs: readonly Need[]
}

/** A requirement of a suite, and how to install it. */
interface Need {
  readonly what: string
  readonly get: string
  isMet(): boolean
}

const path = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
const found = (program: string) => path.some(folder => existsSync(join(folder, program)))

/** A program from Debian's packages. */
const debian = (program: string, packages: string): Need => ({
  what: packages,
  get: `apt-get install ${packages}`,
  isMet: () => found(program)
})

/** The suites build the real helm and the real Kubernetes API server from Go modules, once, into a cache outside the project. */
const GO: Need = {
  what: 'Go 1.26 or newer',
  get: 'https://go.dev/dl; the first build takes some minutes',
  isMet() {
    const { stdout } = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' })
    return Number(/^go1\.(\d+)/.exec(stdout ?? '')?.[1] ?? 0) >= 26
  }
}

const ROOT: Need = {
  what: 'root',
  get: 'containerd and kubelet make mounts, networks and cgroups',
  isMet: () => process.getuid?.() === 0
}

const coverage = (floor: number, folders: readonly string[]) => [
  'c8',
  'report',
  '--reporter=text-summary',
  '--check-coverage',
  // With --per-file, each file must reach the floor. Below 100, only the average of all files must reach it.
  ...(floor === 100 ? ['--per-file'] : []),
  ...['lines', 'branches', 'functions', 'statements'].map(kind => `--${kind}=${floor}`),
  ...folders.map(folder => `--include=${folder}`)
]

const SUITES: readonly Suite[] = [
  {
    name: 'unit',
    what: 'unit, law and feature tests of the agent and of the sandbox, with coverage',
    seconds: 380,
    steps: [
      ['c8', '--reporter=none', 'mocha'],
      coverage(100, ['agent/rules/drain/**', 'agent/rules/plan/**', 'agent/rules/members/**']),
      coverage(90, ['agent/**'])
    ],
    needs: [debian('curl', 'curl'), debian('busybox', 'busybox'), debian('ps', 'procps')]
  },
  {
    name: 'plugin',
    what: 'the APISIX plugin in real nginx workers',
    seconds: 175,
    isSmall: true,
    steps: [['mocha', '--config', 'test/plugin/.mocharc.json']],
    needs: [debian('nginx', 'nginx-light libnginx-mod-http-lua'), debian('gcc', 'gcc libc6-dev')]
  },
  {
    name: 'dashboard',
    what: 'the page in a real browser: use, access, hostile names, scale, and a rolling update in the sandbox',
    seconds: 145,
    isSmall: true,
    steps: [['mocha', '--config', 'test/dashboard/.mocharc.json']],
    needs: [debian('chromium', 'chromium'), debian('curl', 'curl')]
  },
  {
    name: 'lua',
    what: 'luacheck over the plugin and its stand-ins',
    seconds: 1,
    isSmall: true,
    steps: [['luacheck', 'plugin-config', 'sandbox', 'test/plugin', '--quiet']],
    needs: [debian('luacheck', 'lua-check')]
  },
  {
    name: 'model',
    what: 'the guarantee, model-checked; and the variants that must fail',
    seconds: 110,
    isSmall: true,
    steps: [['node', 'model/check.ts']],
    needs: [debian('spin', 'spin'), debian('cc', 'gcc libc6-dev')]
  },
  {
    name: 'hook',
    what: 'apisix-drain-hook: its Go tests, and the real program against faults, the real agent, and real connections',
    seconds: 55,
    isSmall: true,
    steps: [
      ['node', 'scripts/hook.ts'],
      ['mocha', '--config', 'test/hook/.mocharc.json']
    ],
    needs: [GO, debian('ip', 'iproute2'), debian('unshare', 'util-linux')]
  },
  {
    name: 'chart',
    what: 'the helm chart, its alerts and the Dockerfile: helm, kubeconform and helm-docs, built once into a cache',
    seconds: 75,
    isSmall: true,
    steps: [
      ['node', 'test/chart/tools.ts'],
      ['mocha', '--config', 'test/chart/.mocharc.json']
    ],
    needs: [GO, debian('promtool', 'prometheus')]
  },
  {
    name: 'faults',
    what: 'random scenarios of faults, judged from outside; and broken agents and plugins that must be found out (all by hand: test:faults, test:mutants)',
    seconds: 510,
    steps: [
      ['node', 'test/faults/main.ts', '--runs', '400'],
      ['node', 'test/faults/mutants.ts', '--by-tests']
    ],
    needs: []
  },
  {
    name: 'install',
    what: 'the chart on real API servers, the oldest Kubernetes and a current one; the writes of the real ingress controller 1.8',
    seconds: 140,
    steps: [
      ['node', 'test/install/build.ts'],
      ['mocha', '--config', 'test/install/.mocharc.json']
    ],
    needs: [GO]
  },
  {
    name: 'cluster',
    what: 'the chart, the plugin and pods under load on a whole Kubernetes of real parts, and the real ingress controller 1.8',
    seconds: 890,
    steps: [['node', 'test/cluster/main.ts']],
    needs: [
      GO,
      ROOT,
      debian('nginx', 'nginx-light libnginx-mod-http-lua'),
      debian('runc', 'runc'),
      debian('iptables', 'iptables'),
      debian('../lib/cni/ptp', 'containernetworking-plugins'),
      debian('curl', 'curl')
    ]
  }
]

/** Not part of `npm test`: a quick run between two edits. */
const QUICK: Suite = {
  name: 'quick',
  what: 'unit tests alone, luacheck, and 50 random scenarios of faults',
  seconds: 120,
  steps: [
    ['mocha', '--config', 'test/unit/.mocharc.json'],
    ['luacheck', 'plugin-config', 'sandbox', 'test/plugin', '--quiet'],
    ['node', 'test/faults/main.ts', '--runs', '50']
  ],
  needs: [debian('luacheck', 'lua-check')]
}

const logOf = ({ name }: Suite) => join(LOGS, `${name}.log`)

interface Outcome {
  readonly suite: Suite
  readonly result: string
  /** The lines that name the failures. */
  readonly why?: readonly string[]
}

/** Runs a suite, until one of its steps fails, and prints how it ended. */
async function outcomeOf(suite: Suite): Promise<Outcome> {
  const missing = suite.needs.filter(need => !need.isMet())
  if (missing.length > 0) {
    const needs = missing.map(({ what, get }) => `${what} (${get})`).join(', ')
    const result = `not run: needs ${needs}`
    console.log(`== ${suite.name}: ${result}`)
    return { suite, result }
  }
  const began = performance.now()
  const log = createWriteStream(logOf(suite))
  let why: readonly string[] | undefined
  const closing: string[] = []
  for (const [program = '', ...args] of suite.steps) {
    const child = spawn(program, args, { stdio: ['inherit', 'pipe', 'pipe'] })
    let output = ''
    for (const from of [child.stdout, child.stderr])
      from.setEncoding('utf8').on('data', (text: string) => {
        log.write(text)
        output += text
      })
    const end: unknown = await once(child, 'close').then(
      ([code, signal]) => code ?? signal,
      (error: Error) => error.message
    )
    closing.push(...closingLinesOf(output))
    if (end === 0) continue
    why = [...failuresOf(output), `${program} ${args.join(' ')} ended with ${String(end)}`]
    break
  }
  await new Promise<void>(resolve => void log.end(resolve))
  const result = why ? 'FAILED' : 'passed'
  const seconds = Math.round((performance.now() - began) / 1000)
  console.log([`== ${suite.name}: ${result}, ${seconds} s`, ...closing].join('\n'))
  return { suite, result, ...(why && { why }) }
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { help: { type: 'boolean' } } })
const known = [...SUITES, QUICK]
const unknown = positionals.filter(name => !known.some(suite => suite.name === name))
if (values.help || unknown.length > 0) {
  if (unknown.length > 0) console.error(`no such suite: ${unknown.join(', ')}`)
  console.error('usage: npm test [-- SUITE …]\n')
  for (const suite of known)
    console.error(`  ${suite.name.padEnd(9)} ${long(suite.seconds).padEnd(7)} ${suite.what}`)
  console.error('\nWithout a name: all but quick. Times are for two quiet cores, once everything is built.')
  process.exit(values.help ? 0 : 2)
}

const wanted = positionals.length === 0 ? SUITES : known.filter(({ name }) => positionals.includes(name))
const [small, big] = [wanted.filter(({ isSmall }) => isSmall), wanted.filter(({ isSmall }) => !isSmall)]
const together = (suites: readonly Suite[]) => suites.reduce((sum, { seconds }) => sum + seconds, 0)
const total = together(big) + Math.max(together(small) / 2, ...small.map(({ seconds }) => seconds))
const parts = wanted.map(({ name, seconds }) => `${name} ${long(seconds)}`).join(', ')
console.log(`runs ${parts}; together about ${long(total)} on two quiet cores`)
if (wanted.some(({ name }) => name === 'install' || name === 'cluster'))
  console.log('the first time Kubernetes is built from its Go modules, which takes a quarter of an hour more')
mkdirSync(LOGS, { recursive: true })
console.log(`the output of each suite: ${relative('', LOGS)}/<suite>.log`)
const outcome: Outcome[] = []
const run = async (suites: Suite[]) => {
  for (let suite = suites.shift(); suite; suite = suites.shift()) outcome.push(await outcomeOf(suite))
}
await Promise.all([run(small), run(small)])
await run(big)
for (const { suite, why } of outcome)
  if (why) console.log(`\n== ${suite.name}: ${suite.what}\n${readFileSync(logOf(suite), 'utf8')}`)
// CI keeps only the end of a log.
for (const { suite, why } of outcome) if (why) console.log(`\n== ${suite.name} failed\n${why.join('\n')}`)
const bad = outcome.filter(({ result }) => result === 'FAILED' || (process.env['CI'] && result !== 'passed'))
process.exit(bad.length === 0 ? 0 : 1)

function long(seconds: number): string {
  return seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}
