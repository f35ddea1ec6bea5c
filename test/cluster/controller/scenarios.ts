import { startController, type Controller } from '../../install/controller.ts'
import { eventually } from '../../plugin/eventually.ts'
import { begin, finish, kube, oneOf, restart, scale, serving, type Scenario } from '../scenario.ts'
import { world } from '../setup.ts'
import type { Workload } from '../world.ts'
import { controllerOwns } from './owner.ts'

const REPLICAS = 3

/** The real ingress controllers that run now. The first one leads. */
const running: Controller[] = []
/** Workloads that a scenario needs besides its own. */
const beside: Workload[] = []

/** Starts one more controller, a process next to the control plane. */
export function start(): Controller {
  const { controlPlane } = world().cluster
  const controller = startController({
    kubeconfig: controlPlane.kubeconfig,
    admin: world().gateways.admin
  })
  running.push(controller)
  return controller
}

export const leads = (controller: Controller) =>
  eventually('the controller leads', () => controller.log().includes('became leader'))

export async function stopAll(): Promise<void> {
  for (const workload of beside.splice(0)) await workload.remove()
  for (const controller of running.splice(0)) await controller.stop()
}

/** Ends the leader. After SIGKILL, its Lease stays valid for 15 s. */
const end = async (signal: 'SIGTERM' | 'SIGKILL') => running.shift()?.stop(signal)

/**
 * Deletes one more pod, so that the controller writes all changes. Controller 1.8 ignores changes while it does not lead, and
 * writes nothing when it begins to lead: it catches up at the next change.
 */
async function catchUp(web: Workload, controller: Controller): Promise<void> {
  await leads(controller)
  await kube('delete', 'pod', oneOf(web))
  await finish(web)
}

export interface ControllerScenario extends Scenario {
  readonly title: string
}

type Kind = Parameters<typeof controllerOwns>[0]
const scenario = (
  name: string,
  title: string,
  ends: number,
  act: Scenario['act'],
  { kind = 'ApisixRoute', listed }: { readonly kind?: Kind; readonly listed?: string } = {}
): ControllerScenario => ({
  name: `controller-${name}`,
  title,
  ends,
  act,
  options: { replicas: REPLICAS },
  own: controllerOwns(kind, REPLICAS),
  ...(listed !== undefined && { listed })
})

const roll = (web: Workload) => restart(web)

/** Scenarios that share one controller, and may run side by side. */
export const SIDE_BY_SIDE: readonly ControllerScenario[] = [
  scenario('roll', 'rolling update, ApisixRoute', REPLICAS, roll),
  scenario('ingress', 'rolling update, Ingress', REPLICAS, roll, { kind: 'Ingress' }),
  scenario('scale', '3 to 6 to 2 to 3 pods', 4, async web => {
    for (const replicas of [6, 2, REPLICAS]) await scale(web, replicas)
  }),
  scenario('delete', 'two pods deleted at once', 2, async web => {
    const [one, two] = serving(web).map(({ name }) => name)
    await kube('delete', 'pod', one ?? '', two ?? '')
    await finish(web)
  }),
  scenario('relabel', 'a pod loses its label, and is deleted', 1, async web => {
    const pod = oneOf(web)
    await kube('label', 'pod', pod, 'app=none', '--overwrite')
    // The record of the relabelled pod keeps its first label, so that pod still counts as serving.
    await eventually('its replacement serves', () => serving(web).length === REPLICAS + 1)
    await kube('delete', 'pod', pod)
  }),
  scenario(
    'selector',
    "the Service's selector changes, old pods scaled to 0 at once",
    REPLICAS,
    async web => {
      const green = 'controller-green'
      const options = { name: green, arm: 'apisix-drain', replicas: REPLICAS } as const
      beside.push(await world().run(options, controllerOwns('ApisixRoute', REPLICAS)))
      const patch = JSON.stringify({ spec: { selector: { app: green } } })
      await kube('patch', 'service', web.options.name, `--patch=${patch}`)
      await kube('scale', web.target, '--replicas=0')
    },
    { listed: 'controller-green' }
  )
]

/** Scenarios that run alone, because each ends the controller that the others need. */
export const ALONE: readonly ControllerScenario[] = [
  scenario('restarted', 'controller restarted in the middle of a rolling update', REPLICAS + 1, async web => {
    await begin(web)
    await end('SIGTERM')
    const next = start()
    await finish(web)
    await catchUp(web, next)
  }),
  scenario('two', 'two controllers, the leader killed in the middle', REPLICAS + 1, async web => {
    const second = start()
    await eventually('the second waits for its turn', () => second.log().includes('attempting to acquire'))
    await begin(web)
    await end('SIGKILL')
    await finish(web)
    await catchUp(web, second)
  }),
  scenario('dead', 'rolling update after the controller was killed', REPLICAS + 1, async web => {
    await end('SIGKILL')
    await roll(web)
    await eventually(
      'every listed pod is gone',
      () => web.pods().filter(({ goneAt }) => goneAt).length === REPLICAS
    )
    await catchUp(web, start())
  })
]

/** The scenario for an agent without the plugin. */
export const WITHOUT_PLUGIN = scenario('observed', 'rolling update, without the plugin', REPLICAS, roll)
