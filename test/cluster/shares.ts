import { enterCgroup, makeCgroup } from './cgroups.ts'

/**
 * The CPU weight of each part, as a multiple of the default. A real control plane runs on other machines. So here the hosts,
 * the clients and the DNS weigh more: clients must send on time, and every hook asks the DNS. kube-proxy runs with the control
 * plane, because no hook waits for it. The whole run weighs only twice the default: it waits for threads of the kernel (mounts,
 * cgroups), which need the CPU too.
 */
const TIMES = { run: 2, suite: 1, clients: 2, dns: 4, host: 4 }

/** The parts that are not hosts. Each has a cgroup next to the cgroups of the hosts. */
const PARTS = ['suite', 'clients', 'dns'] as const

/** Makes the cgroups of a run, except those of its hosts. */
export function makeShares(name: string): void {
  makeCgroup(name, TIMES.run)
  for (const part of PARTS) makeCgroup(cgroupOf(name, part), TIMES[part])
}

/** Moves this process and its later children into the cgroup `suite`, which is next to the cgroups of the run's hosts. */
export const enterSuite = (name: string): void => enterCgroup(cgroupOf(name, 'suite'), 0)

/** Returns the cgroup of this part of the run `name`. */
export const cgroupOf = (name: string, part: (typeof PARTS)[number]): string => `${name}/${part}`

/** The cgroups of one host: `system` has its kubelet and containerd, and `pods` is the parent of its pods' cgroups. */
export interface HostCgroups {
  readonly system: string
  readonly pods: string
}

/** Makes and returns the cgroups of a host, in the run `name`. */
export function makeHostCgroups(name: string, host: string): HostCgroups {
  const of = (part: string) => `${name}/${host}/${part}`
  makeCgroup(`${name}/${host}`, TIMES.host)
  makeCgroup(of('system'))
  makeCgroup(of('pods'))
  return { system: of('system'), pods: of('pods') }
}
