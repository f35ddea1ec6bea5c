/**
 * `node test/cluster/main.ts [--bench] [MOCHA ARGUMENT …]` runs the suite, or with `--bench` its measurements. It uses its own
 * namespaces for mounts, network and processes. So its children always end with it, and other processes see none of its mounts
 * and addresses.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { KUBERNETES } from '../chart/tools.ts'
import { CONTAINERD_VERSION } from './build.ts'
import { phase } from './phase.ts'
import { missing } from './needs.ts'
import { runStandIn } from './stand-in.ts'
import { imagesOf, makeState, removeState, stateOf, sweep } from './state.ts'

/** The first process of a PID namespace must reap orphans. dash reaps them while it waits for its child. */
const NAMESPACES = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
const FIRST = ['dash', '-c', '"$@"; exit $?', 'dash']
const BUILD = 'test/cluster/build.ts'
const MAKE_IMAGES = 'test/cluster/images/make.ts'
const BENCH = process.argv[2] === '--bench'
const MOCHA = ['mocha', '--config', `test/cluster/.mocharc.${BENCH ? 'bench.' : ''}json`]

/** @throws Error if the program fails; the program prints the reason */
async function run(program: string, ...args: readonly string[]): Promise<void> {
  const [code] = (await once(spawn(program, args, { stdio: 'inherit' }), 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${[program, ...args].join(' ')} has failed`)
}

const problems = missing()
if (problems.length > 0) {
  console.error(`this machine cannot run a Kubernetes host:\n${problems.map(line => `- ${line}`).join('\n')}`)
  // In CI a run without real kubelets must fail, or it would look like a full run.
  process.exit(process.env['CI'] ? 2 : runStandIn())
}
await phase('programs ready', () => run(process.execPath, BUILD))
console.log(`real kubelets run: Kubernetes ${KUBERNETES[1]}, containerd ${CONTAINERD_VERSION}`)
const swept = sweep()
if (swept.length > 0) console.log(`removed what killed runs had left: ${swept.join(', ')}`)
const state = stateOf(process.pid)
try {
  makeState(state)
  // This process runs outside the namespaces, because it needs npm's registry. It has the suite's share of the CPU.
  const images = phase('images made', () => run(process.execPath, MAKE_IMAGES, imagesOf(state), state.name))
  const child = spawn('unshare', [...NAMESPACES, ...FIRST, ...MOCHA, ...process.argv.slice(BENCH ? 3 : 2)], {
    stdio: 'inherit',
    env: { ...process.env, CLUSTER_STATE: String(process.pid) }
  })
  // At Ctrl-C the terminal signals the whole group, and mocha ends by itself. Other signals reach only this process: it kills the suite.
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGKILL'))
  process.on('SIGINT', () => {})
  // The hosts wait for the images. If the images fail, the suite must end.
  images.catch(() => child.kill('SIGKILL'))
  const [code] = (await once(child, 'exit')) as [number | null]
  process.exitCode = code ?? 1
  await images
} finally {
  removeState(state)
}
