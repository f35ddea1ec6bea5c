import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const MOUNTED = '/sys/fs/cgroup'

/** The file of the CPU weight and its default, for each version of cgroups. */
const WEIGHTS = [
  ['cpu.shares', 1024],
  ['cpu.weight', 100]
] as const

/** Creates the cgroup in every hierarchy. Its CPU weight is the default times `times`. */
export function makeCgroup(name: string, times = 1): void {
  for (const hierarchy of hierarchies()) {
    mkdirSync(join(hierarchy, name), { recursive: true })
    if (isV2()) handOn(name)
    for (const [file, weight] of WEIGHTS) {
      const path = join(hierarchy, name, file)
      if (existsSync(path)) writeFileSync(path, String(weight * times))
    }
  }
}

/**
 * Enables every controller in all parents of the cgroup. With v2 a cgroup has only the controllers that all its parents enable
 * for it. A kubelet needs all controllers (k8s.io/kubernetes/pkg/kubelet/cm/cgroup_v2_manager_linux.go, Validate).
 */
function handOn(name: string): void {
  const above = name.split('/').map((_, depth, parts) => join(MOUNTED, ...parts.slice(0, depth)))
  for (const folder of above) {
    const controllers = readFileSync(join(folder, 'cgroup.controllers'), 'utf8').split(/\s+/).filter(Boolean)
    writeFileSync(join(folder, 'cgroup.subtree_control'), controllers.map(one => `+${one}`).join(' '))
  }
}

/** Moves the process, and its later children, into the cgroup. 0 is the calling process. */
export function enterCgroup(name: string, pid: number): void {
  for (const hierarchy of hierarchies()) {
    const folder = join(hierarchy, name)
    if (WEIGHTS.some(([file]) => existsSync(join(folder, file))))
      writeFileSync(join(folder, 'cgroup.procs'), String(pid))
  }
}

/** Removes the cgroup and all cgroups below it. Call this once none of them has a process. */
export function removeCgroup(name: string): void {
  for (const hierarchy of hierarchies()) remove(join(hierarchy, name))
}

/** The names of all top-level cgroups. */
export const topCgroups = (): readonly string[] => hierarchies().flatMap(folder => readdirSync(folder))

/** Whether the machine uses only cgroup v2. False if v2 is mounted next to v1: v2 then has only the controllers that v1 lacks. */
const isV2 = (): boolean => existsSync(join(MOUNTED, 'cgroup.controllers'))

/** Returns the folder of each controller's hierarchy with cgroup v1, or the only hierarchy of cgroup v2. */
function hierarchies(): readonly string[] {
  if (isV2()) return [MOUNTED]
  return readdirSync(MOUNTED)
    .map(name => join(MOUNTED, name))
    .filter(folder => existsSync(join(folder, 'cgroup.procs')))
}

/** Removes the folders of a cgroup, the innermost first. The kernel removes the files in them; a process cannot. */
function remove(folder: string): void {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) remove(join(folder, entry.name))
  rmdirSync(folder)
}
