import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const MOUNTED = '/sys/fs/cgroup'

/** File and default of each version of cgroups. */
const WEIGHTS = [
  ['cpu.shares', 1024],
  ['cpu.weight', 100]
] as const

/** Makes it in every hierarchy, with so many times the weight that a cgroup has by default where there is not enough CPU. */
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
 * With v2 a cgroup has the controllers that all above it hand on, and a kubelet wants every one that the machine has
 * (k8s.io/kubernetes/pkg/kubelet/cm/cgroup_v2_manager_linux.go, Validate).
 */
function handOn(name: string): void {
  const above = name.split('/').map((_, depth, parts) => join(MOUNTED, ...parts.slice(0, depth)))
  for (const folder of above) {
    const controllers = readFileSync(join(folder, 'cgroup.controllers'), 'utf8').split(/\s+/).filter(Boolean)
    writeFileSync(join(folder, 'cgroup.subtree_control'), controllers.map(one => `+${one}`).join(' '))
  }
}

/** Its share of the CPU is from now on that of the process, and of what that starts. 0 is the process that asks. */
export function enterCgroup(name: string, pid: number): void {
  for (const hierarchy of hierarchies()) {
    const folder = join(hierarchy, name)
    if (WEIGHTS.some(([file]) => existsSync(join(folder, file))))
      writeFileSync(join(folder, 'cgroup.procs'), String(pid))
  }
}

/** With all below it. Only when no process is left in any. */
export function removeCgroup(name: string): void {
  for (const hierarchy of hierarchies()) remove(join(hierarchy, name))
}

/** The names of all that are below none. */
export const topCgroups = (): readonly string[] => hierarchies().flatMap(folder => readdirSync(folder))

/** Not where v2 is beside v1, with what v1 has left. */
const isV2 = (): boolean => existsSync(join(MOUNTED, 'cgroup.controllers'))

/** Each controller's own where cgroup v1 is mounted, else the one of v2. */
function hierarchies(): readonly string[] {
  if (isV2()) return [MOUNTED]
  return readdirSync(MOUNTED)
    .map(name => join(MOUNTED, name))
    .filter(folder => existsSync(join(folder, 'cgroup.procs')))
}

/** A cgroup's files cannot be removed, only the folders, the innermost first. */
function remove(folder: string): void {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) remove(join(folder, entry.name))
  rmdirSync(folder)
}
