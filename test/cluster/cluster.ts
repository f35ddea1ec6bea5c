import { join } from 'node:path'
import { builtFrom } from '../../sandbox/ends.ts'
import { API_SERVER, DNS, HOSTS } from './addresses.ts'
import { startContainerd } from './containerd.ts'
import { startControlPlane, type ControlPlane } from './control-plane.ts'
import { startKubelet, type Kubelet } from './kubelet.ts'
import { prepareMachine } from './machine.ts'
import { startNetwork } from './network.ts'
import { cgroupOf, makeHostCgroups } from './shares.ts'
import type { State } from './state.ts'

/** A whole Kubernetes made of its real parts, with no pods yet. */
export interface Cluster {
  /** The name of this run. */
  readonly name: string
  readonly controlPlane: ControlPlane
  readonly kubelets: readonly Kubelet[]
  stop(): Promise<void>
}

/**
 * Starts the cluster. Call this only inside the namespaces that `main.ts` makes: if this process is killed, its children end
 * with the PID namespace.
 *
 * @param images OCI archives, which every host imports as soon as the files exist
 * @throws Error with the end of the log of the part that does not start
 */
export async function startCluster(state: State, images: readonly string[]): Promise<Cluster> {
  const { folder } = state
  prepareMachine(folder, [API_SERVER, DNS, ...HOSTS.map(({ address }) => address)])
  return await builtFrom(async (ends, stop) => {
    const started = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
      const part = await starting
      ends.push(() => part.stop())
      return part
    }
    const [controlPlane, ...hosts] = await Promise.all([
      started(startControlPlane(join(folder, 'control-plane'))),
      ...HOSTS.map(async host => {
        const cgroups = makeHostCgroups(state.name, host.name)
        const options = { ...host, cgroups, folder: join(folder, host.name) }
        const { socket } = await started(startContainerd({ ...options, images }))
        return { ...options, socket }
      })
    ])
    const { kubeconfig } = controlPlane
    const isReady = async (name: string) =>
      saysReady((await controlPlane.call('GET', `/api/v1/nodes/${name}`)).json)
    const [, ...kubelets] = await Promise.all([
      started(startNetwork(join(folder, 'network'), kubeconfig, cgroupOf(state.name, 'dns'))),
      ...hosts.map(host => started(startKubelet({ ...host, kubeconfig, isReady })))
    ])
    return { name: state.name, controlPlane, kubelets, stop }
  })
}

function saysReady(node: unknown): boolean {
  const { status } = node as { status?: { conditions?: readonly { type: string; status: string }[] } }
  return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}
