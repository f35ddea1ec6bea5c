import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const MOUNTED = '/sys/fs/cgroup'

/** The file of the CPU weight and its default, for each version of cgroups. */
const WEIGHTS = [
  ['cpu.shares', 1024],
  ['cpu.weight', 100]
] as const

/** Creates it in every hierarchy, with this multiple of a cgroup's default CPU weight. */
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
 * With v2 a cgroup only has the controllers that all its parents hand on, and a kubelet needs every controller of the
 * machine (k8s.io/kubernetes/pkg/kubelet/cm/cgroup_v2_manager_linux.go, Validate).
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

/** Removes it with all cgroups below it, once no process is left in any. */
export function removeCgroup(name: string): void {
  for (const hierarchy of hierarchies()) remove(join(hierarchy, name))
}

/** The names of all top-level cgroups. */
export const topCgroups = (): readonly string[] => hierarchies().flatMap(folder => readdirSync(folder))

/** False if v2 is mounted next to v1, and has only the controllers that v1 does not use. */
const isV2 = (): boolean => existsSync(join(MOUNTED, 'cgroup.controllers'))

/** With cgroup v1 the hierarchy of each controller, else the one of v2. */
function hierarchies(): readonly string[] {
  if (isV2()) return [MOUNTED]
  return readdirSync(MOUNTED)
    .map(name => join(MOUNTED, name))
    .filter(folder => existsSync(join(folder, 'cgroup.procs')))
}

/** Only folders of cgroups can be removed, the innermost first; their files cannot. */
function remove(folder: string): void {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) remove(join(folder, entry.name))
  rmdirSync(folder)
}
