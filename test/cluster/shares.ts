import { enterCgroup, makeCgroup } from './cgroups.ts'

/**
 * The CPU weight of each part, as a multiple of the default. A real control plane is on other machines. So here it must
 * delay neither a host, nor the clients, which must send on time, nor the DNS, which every hook asks.
 * kube-proxy is with the control plane: one serves both hosts here, and no hook waits for it. The whole run must not weigh
 * much more than one other process: it waits for threads of the kernel (mounts, cgroups), which must get the CPU too.
 */
const TIMES = { run: 2, suite: 1, clients: 2, dns: 4, host: 4 }

/** The parts other than hosts, each with a cgroup next to those of the hosts. */
const PARTS = ['suite', 'clients', 'dns'] as const

/** The cgroups of a run, except those of its hosts. */
export function makeShares(name: string): void {
  makeCgroup(name, TIMES.run)
  for (const part of PARTS) makeCgroup(cgroupOf(name, part), TIMES[part])
}

/** Moves this process and its later children into a cgroup next to those of the run's hosts, not above them. */
export const enterSuite = (name: string): void => enterCgroup(cgroupOf(name, 'suite'), 0)

/** The cgroup of a part of the run of that name. */
export const cgroupOf = (name: string, part: (typeof PARTS)[number]): string => `${name}/${part}`

/** The cgroups of one host of a run: that of its kubelet and runtime, and the parent of its pods' cgroups. */
export interface HostCgroups {
  readonly system: string
  readonly pods: string
}

/** The cgroups of a host, in the run of that name. */
export function makeHostCgroups(name: string, host: string): HostCgroups {
  const of = (part: string) => `${name}/${host}/${part}`
  makeCgroup(`${name}/${host}`, TIMES.host)
  makeCgroup(of('system'))
  makeCgroup(of('pods'))
  return { system: of('system'), pods: of('pods') }
}
