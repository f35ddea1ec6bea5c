import { execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { steps } from '../build/getting-started.ts'
import { toolPath } from '../chart/tools.ts'
import { eventually } from '../plugin/eventually.ts'
import { answers } from './agent.ts'
import { programPath } from './build.ts'
import { firstDrainPage, type Ran } from './first-drain.ts'
import type { OwnedService } from '../../sandbox/owner/owner.ts'
import { GATEWAY } from './images/names.ts'
import { GATEWAY_NAMESPACE } from './objects/gateways.ts'
import { NAMESPACE } from './objects/workload.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGE = join(ROOT, 'docs/first-drain.md')
const DASHBOARD = 'http://127.0.0.1:8081/api/state'
const IN_NAMESPACE = `--namespace=${GATEWAY_NAMESPACE}`
/** The time from an endpoint's change to the owner's write, as with the real ingress controllers. */
const OWNER_LAG = { minMs: 70, maxMs: 340 }
/** Pods of the workload. */
const REPLICAS = 2

type State = Readonly<Record<'drains' | 'past', readonly { readonly pod: string }[]>>

/** Runs steps 2 to 5 of README.md verbatim; the suite itself makes the images of step 1. UPDATE=1 writes docs/first-drain.md. */
describe('getting started by the README', () => {
  const ran: Ran[] = []
  let folder = ''
  let web: Workload

  /** Returns the environment of every command. */
  const environment = () => ({
    ...process.env,
    PATH: `${folder}/bin:${process.env['PATH']}`,
    KUBECONFIG: world().cluster.controlPlane.kubeconfig,
    HELM_CACHE_HOME: join(folder, 'helm'),
    // The suite's images have this registry in their names.
    R: 'docker.io/library'
  })
  const shell = async (command: string) => {
    const options = { env: environment(), cwd: folder, maxBuffer: 2 ** 24 }
    const bash = promisify(execFile)('bash', ['-eo', 'pipefail', '-c', `{ ${command}\n} 2>&1`], options)
    const failed = ({ stdout }: { stdout: string }) => {
      throw new Error(`${command}\n${stdout}`)
    }
    return (await bash.catch(failed)).stdout
  }
  /** Runs the commands of one step of the README, and records what they print. */
  const inStep = async (number: number) => {
    for (const command of steps()[number - 1]?.commands ?? []) {
      const output = await shell(command)
      // Helm prints the folders that the links lead to, so both prefixes are removed.
      ran.push({ command, output: output.replaceAll(`${folder}/`, '').replaceAll(`${ROOT}/`, '') })
    }
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'started-'))
    for (const made of ['bin', 'apisix']) mkdirSync(join(folder, made))
    symlinkSync(toolPath('helm'), join(folder, 'bin/helm'))
    symlinkSync(programPath('kubectl'), join(folder, 'bin/kubectl'))
    symlinkSync(join(ROOT, 'charts'), join(folder, 'charts'))
    // Helm finds a folder of this name before a repository of that name.
    symlinkSync(join(import.meta.dirname, 'apisix-chart'), join(folder, 'apisix/apisix'))
    await shell(`helm uninstall apisix-drain ${IN_NAMESPACE} --ignore-not-found --wait`)
    // Helm does not wait for pods. The README's commands select pods by a label, which the pods of the last release have too.
    const agents = '-l app.kubernetes.io/name=apisix-drain'
    await shell(`kubectl wait pod ${agents} ${IN_NAMESPACE} --for=delete --timeout=2m`)
    await world().kube('delete', 'secret', 'apisix-drain', 'apisix-drain-token', IN_NAMESPACE)
    // An agent that was uninstalled may have left its Lease. A new cluster has no Lease.
    await world().kube('delete', 'lease', 'apisix-drain', IN_NAMESPACE, '--ignore-not-found')
    const own = (service: OwnedService) => Promise.resolve(world().own(service, OWNER_LAG))
    web = await world().run({ name: 'started', arm: 'sleep', replicas: REPLICAS }, own)
    // From here on a Helm release runs the gateways, without the plugin.
    await world().kube('delete', 'deployment', 'apisix', IN_NAMESPACE)
    const values = `--set image=${GATEWAY},apisix.admin.credentials.admin=${world().gateways.admin.key}`
    await shell(`helm ${IN_NAMESPACE} install apisix apisix/apisix --wait ${values}`)
  })
  after(async () => {
    await web?.remove()
    await world().kube('label', 'namespace', NAMESPACE, 'apisix-drain.io/inject-')
    for (const release of ['apisix-drain', 'apisix'])
      await shell(`helm uninstall ${release} ${IN_NAMESPACE} --ignore-not-found --wait`)
    rmSync(folder, { recursive: true, force: true })
  })

  it('makes the Secret', () => inStep(2))

  it('installs the agent, and the files of the plugin', () => inStep(3))

  it('loads the plugin with the printed values, and passes doctor', async () => {
    await inStep(4)
    const said = ran.at(-1)?.output ?? ''
    expect(said).to.match(/^ok {4}barrier: .*: fit, plugin/m)
    expect(said).to.match(/ 0 failed: the agent can work here\n$/)
  })

  it('shows the drains on the dashboard, and answers the hooks of the second restart with proof', async () => {
    const notes = ran.map(({ output }) => output).join('')
    const [forward = '', show = ''] = notes.match(/kubectl.* (?:port-forward|get secret) .*/g) ?? []
    const token = await shell(show)
    const forwarding = spawn('bash', ['-ec', `exec ${forward}`], { env: environment(), stdio: 'ignore' })
    try {
      await inStep(5)
      let status = ''
      const answered = /^All is well\.\n[^]*^shop\/started-\S+ +200 +drained +barrier /m
      const again = async () => answered.test((status = await shell(ran.at(-1)?.command ?? '')))
      await eventually('the first hook, which keeps the sleep of 5 s, is answered', again)
      // The kubelet's last deletion, with a grace of 0, must not count as the decision: then the hook would seem to take 0 ms.
      expect(status).not.to.match(/^shop\/started-.* 0 ms +\S+( \S+)? ago$/m)
      const seen = async () => {
        const response = await fetch(DASHBOARD, { headers: { authorization: `Bearer ${token}` } })
        const { drains, past } = (await response.json()) as State
        return [...drains, ...past].filter(({ pod }) => pod.startsWith('started-')).length >= 2 * REPLICAS
      }
      await eventually('the drains are on the dashboard', () => seen().catch(() => false))
    } finally {
      forwarding.kill()
    }
    const proved = async () => (await answers(world()))['drained/barrier'] === REPLICAS
    await eventually('the hooks are answered', proved)
    expect(await answers(world())).to.deep.equal({ 'drained/barrier': REPLICAS })
    // The pods had a plain sleep: the injection has replaced it, and doctor says what that costs.
    expect(await shell(steps()[3]?.commands.at(-1) ?? '')).to.match(
      /started-\S+ \(2 pods\): our hook replaces a sleep of 5s, /
    )
    if (process.env['UPDATE']) writeFileSync(PAGE, firstDrainPage(steps(), ran))
  })
})
