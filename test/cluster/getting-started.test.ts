import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { toolPath } from '../chart/tools.ts'
import { eventually } from '../plugin/eventually.ts'
import { answers, total } from './agent.ts'
import { programPath } from './build.ts'
import { HELPER } from './images/names.ts'
import { GATEWAY_NAMESPACE } from './objects/gateways.ts'
import { NAMESPACE } from './objects/workload.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
/** The commands after "Then four commands"; continued lines are joined. */
const COMMANDS = (/Then four commands.*?```sh\n(.*?)```/s.exec(README)?.[1] ?? '')
  .replaceAll('\\\n', ' ')
  .trim()
  .split('\n')
const TOKEN = 'of-your-choice'
const DASHBOARD = 'http://127.0.0.1:8081/api/state'
const WAIT_MS = 90_000
const IN_NAMESPACE = `--namespace=${GATEWAY_NAMESPACE}`

type State = Readonly<Record<'drains' | 'past', readonly { readonly pod: string }[]>>

/** The steps of README.md's "Getting started on a cluster", verbatim except for one image's name, on a cluster without an agent. */
describe('getting started by the README', () => {
  let programs = ''
  let web: Workload

  const environment = () => ({
    ...process.env,
    PATH: `${programs}:${process.env['PATH']}`,
    KUBECONFIG: world().cluster.controlPlane.kubeconfig,
    // The cluster's copy of the agent's image has this registry in its name.
    R: 'docker.io/library'
  })
  const shell = async (command: string) =>
    (await promisify(execFile)('bash', ['-ec', command], { env: environment() })).stdout

  before(async () => {
    programs = mkdtempSync(join(tmpdir(), 'programs-'))
    symlinkSync(toolPath('helm'), join(programs, 'helm'))
    symlinkSync(programPath('kubectl'), join(programs, 'kubectl'))
    await shell(`helm uninstall apisix-drain ${IN_NAMESPACE} --ignore-not-found --wait`)
    const token = JSON.stringify({ stringData: { 'dashboard-token': TOKEN } })
    await world().kube('patch', 'secret', 'apisix-drain', IN_NAMESPACE, `--patch=${token}`)
    web = await world().run({ name: 'started', arm: 'none', replicas: 2 })
  })
  after(async () => {
    await web?.remove()
    await world().kube('label', 'namespace', NAMESPACE, 'apisix-drain.io/inject-')
    await shell(`helm uninstall apisix-drain ${IN_NAMESPACE} --ignore-not-found --wait`)
    rmSync(programs, { recursive: true, force: true })
  })

  it('has four commands', () => expect(COMMANDS).length(4))

  it('shows the first drains on the dashboard, and answers hooks from the second restart on', async () => {
    const [asWritten = '', label = '', restart = '', forward = ''] = COMMANDS
    const [image = '', tag = ''] = HELPER.split(':')
    const install = `${asWritten.replace('$R/apisix-drain-hook', image)} --set-string injection.helper.image.tag=${tag}`
    const restarted = async () => {
      await shell(restart)
      await shell(`kubectl -n ${NAMESPACE} rollout status deployment/started --timeout=${WAIT_MS / 1000}s`)
    }
    await shell(install)
    await shell(label)
    await restarted()
    const forwarding = spawn('bash', ['-ec', `exec ${forward}`], { env: environment(), stdio: 'ignore' })
    try {
      const drained = async () => {
        const response = await fetch(DASHBOARD, { headers: { authorization: `Bearer ${TOKEN}` } })
        const { drains, past } = (await response.json()) as State
        return [...drains, ...past].filter(({ pod }) => pod.startsWith('started-')).length >= 2
      }
      await eventually('the drains are on the dashboard', () => drained().catch(() => false), WAIT_MS)
    } finally {
      forwarding.kill()
    }
    await restarted()
    await eventually('the hooks are answered', async () => total(await answers(world())) >= 2, WAIT_MS)
  })
})
