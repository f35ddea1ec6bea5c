import { enterCgroup, makeCgroup } from './cgroups.ts'

/**
 * The share of each where the machine's CPUs do not suffice, in times the default. A control plane is on other machines, and must
 * not make a host wait; nor may it make the clients wait, who are to send when they should, or the DNS, which every hook asks.
 * kube-proxy is with the control plane: one serves both hosts here, and no hook waits for it. All of it together must not weigh
 * much more than one process beside it: the kernel's own threads are beside it, and mounts and cgroups wait for them.
 */
const TIMES = { run: 2, suite: 1, clients: 2, dns: 4, host: 4 }

/** What is no host, each with a cgroup beside those of the hosts. */
const PARTS = ['suite', 'clients', 'dns'] as const

/** The cgroups of a run, but for those of its hosts. */
export function makeShares(name: string): void {
  makeCgroup(name, TIMES.run)
  for (const part of PARTS) makeCgroup(cgroupOf(name, part), TIMES[part])
}

/** Puts this process, and what it starts from now on, beside the cgroups of the hosts of that run, and not above them. */
export const enterSuite = (name: string): void => enterCgroup(cgroupOf(name, 'suite'), 0)

/** The cgroup of a part of the run of that name. */
export const cgroupOf = (name: string, part: (typeof PARTS)[number]): string => `${name}/${part}`

/** The cgroups of one host of a run: of what runs its pods, and above those of its pods. */
export interface HostCgroups {
  readonly system: string
  readonly pods: string
}

/** Those of a host, in the run of that name. */
export function makeHostCgroups(name: string, host: string): HostCgroups {
  const of = (part: string) => `${name}/${host}/${part}`
  makeCgroup(`${name}/${host}`, TIMES.host)
  makeCgroup(of('system'))
  makeCgroup(of('pods'))
  return { system: of('system'), pods: of('pods') }
}
