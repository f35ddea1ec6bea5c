import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DNS, type HostAddresses } from './addresses.ts'
import { programPath } from './build.ts'
import { ready, startDaemon } from './daemon.ts'
import type { HostCgroups } from './shares.ts'

/** A real kubelet. With its containerd, it makes one host of the cluster. */
export interface Kubelet {
  readonly name: string
  /** The log file. It shows when each preStop hook was called, and when the hook returned. */
  readonly log: string
  /** The folder of the pods' logs: a folder `namespace_name_uid` for each existing pod, with a folder for each container. */
  readonly podLogs: string
  /** Its pods go on. @param more more fields of its configuration */
  restart(more?: object): Promise<void>
  stop(): Promise<void>
}

export interface KubeletOptions extends HostAddresses {
  readonly folder: string
  readonly kubeconfig: string
  /** The socket of its containerd. */
  readonly socket: string
  /** The kubelet makes the cgroups of its pods below `cgroups.pods`, and ends unknown cgroups there. */
  readonly cgroups: HostCgroups
  /** Whether the API server reports the node as ready. */
  isReady(name: string): Promise<boolean>
}

/** @throws Error with the end of the kubelet's log if its node does not become ready */
export async function startKubelet(options: KubeletOptions): Promise<Kubelet> {
  const { name, folder } = options
  const file = (part: string) => join(folder, part)
  mkdirSync(podLogsOf(options))
  writeFileSync(file('resolv.conf'), '')
  const args = [
    `--config=${file('kubelet.json')}`,
    `--kubeconfig=${options.kubeconfig}`,
    `--hostname-override=${name}`,
    `--node-ip=${options.address}`,
    `--root-dir=${file('kubelet')}`,
    `--cert-dir=${file('kubelet/pki')}`,
    '--v=2',
    // Logs the calls and returns of preStop hooks.
    '--vmodule=kuberuntime_container=3'
  ]
  const start = async (more = {}) => {
    writeFileSync(file('kubelet.json'), JSON.stringify({ ...config(options), ...more }))
    const daemon = startDaemon(`kubelet of ${name}`, file('kubelet.log'), programPath('kubelet'), args, {
      cgroup: options.cgroups.system
    })
    await ready(daemon, () => options.isReady(name))
    return daemon
  }
  let kubelet = await start()
  return {
    name,
    log: kubelet.log,
    podLogs: podLogsOf(options),
    async restart(more) {
      await kubelet.stop()
      kubelet = await start(more)
    },
    stop: () => kubelet.stop()
  }
}

const podLogsOf = ({ folder }: Pick<KubeletOptions, 'folder'>): string => join(folder, 'pods')

const config = ({ cgroups, folder, address, kubeletPort, socket, taints }: KubeletOptions): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address,
  port: kubeletPort,
  healthzPort: 0,
  containerRuntimeEndpoint: `unix://${socket}`,
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${cgroups.pods}`,
  // From Kubernetes 1.35 on, the kubelet refuses cgroup v1 unless this is false.
  failCgroupV1: false,
  failSwapOn: false,
  // No other run uses the network namespace in which it listens.
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: 'AlwaysAllow' },
  clusterDNS: [DNS],
  clusterDomain: 'cluster.local',
  resolvConf: join(folder, 'resolv.conf'),
  podLogsDir: podLogsOf({ folder }),
  localStorageCapacityIsolation: false,
  // A disk that is nearly full for other reasons must not evict pods here.
  evictionHard: { 'nodefs.available': '0%', 'imagefs.available': '0%', 'memory.available': '0%' },
  // A container that restarts again and again waits for this time.
  crashLoopBackOff: { maxContainerRestartPeriod: '1s' },
  imageGCHighThresholdPercent: 100,
  oomScoreAdj: 0,
  maxPods: 200,
  registerWithTaints: taints
})
