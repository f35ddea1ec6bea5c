import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { enterCgroup, makeCgroup, removeCgroup, topCgroups } from './cgroups.ts'

const PREFIX = 'apisix-drain-cluster-'

/**
 * The share of each where the machine's CPUs do not suffice, in times the default. A control plane is on other machines, and must
 * not make a host wait; nor may it make the clients wait, who are to send when they should, or the DNS, which every hook asks.
 * kube-proxy is with the control plane: one serves both hosts here, and no hook waits for it. All of it together must not weigh
 * much more than one process beside it: the kernel's own threads are beside it, and mounts and cgroups wait for them.
 */
const TIMES = { run: 2, suite: 1, clients: 2, dns: 4, host: 4 }

/** What a run leaves on the machine beside its namespaces: a folder, and a cgroup of that name in every hierarchy. */
export interface State {
  readonly name: string
  readonly folder: string
}

/** The state of the run of that process. */
export const stateOf = (pid: number): State => ({
  name: `${PREFIX}${pid}`,
  folder: join(tmpdir(), `${PREFIX}${pid}`)
})

export const imagesOf = ({ folder }: State): string => join(folder, 'images.tar')

export function makeState(state: State): void {
  mkdirSync(state.folder)
  makeCgroup(state.name, TIMES.run)
  for (const part of PARTS) makeCgroup(cgroupOf(state.name, part), TIMES[part])
}

/** Puts this process, and what it starts from now on, beside the cgroups of the hosts of that run, and not above them. */
export const enterSuite = (name: string): void => enterCgroup(cgroupOf(name, 'suite'), 0)

/** What is no host, each with a cgroup beside those of the hosts. */
const PARTS = ['suite', 'clients', 'dns'] as const

/** The cgroup of a part of the run of that name. */
export const cgroupOf = (name: string, part: (typeof PARTS)[number]): string => `${name}/${part}`

/** The cgroups of one host of a run: of what runs its pods, and above those of its pods. */
export interface HostCgroups {
  readonly system: string
  readonly pods: string
}

export function makeHostCgroups({ name }: State, host: string): HostCgroups {
  const of = (part: string) => `${name}/${host}/${part}`
  makeCgroup(`${name}/${host}`, TIMES.host)
  makeCgroup(of('system'))
  makeCgroup(of('pods'))
  return { system: of('system'), pods: of('pods') }
}

/** Only when no process of that run is left: they go with its PID namespace. */
export function removeState({ name, folder }: State): void {
  removeCgroup(name)
  rmSync(folder, { recursive: true, force: true })
}

/** Removes what runs have left that were killed. Returns their names. */
export function sweep(): readonly string[] {
  const names = [...readdirSync(tmpdir()), ...topCgroups()].filter(name => name.startsWith(PREFIX))
  const dead = [...new Set(names)]
    .map(name => stateOf(Number(name.slice(PREFIX.length))))
    .filter(({ name }) => !existsSync(`/proc/${name.slice(PREFIX.length)}`))
  for (const state of dead) removeState(state)
  return dead.map(({ name }) => name)
}
