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
    handOn(hierarchy, name)
    for (const [file, weight] of WEIGHTS) {
      const path = join(hierarchy, name, file)
      if (existsSync(path)) writeFileSync(path, String(weight * times))
    }
  }
}

/** With v2 a cgroup has a weight where the ones above it hand the controller on. */
function handOn(hierarchy: string, name: string): void {
  const above = name.split('/').map((_, depth, parts) => join(hierarchy, ...parts.slice(0, depth)))
  for (const folder of above) {
    const controllers = join(folder, 'cgroup.controllers')
    if (existsSync(controllers) && readFileSync(controllers, 'utf8').split(/\s/).includes('cpu'))
      writeFileSync(join(folder, 'cgroup.subtree_control'), '+cpu')
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

/** Each controller's own where cgroup v1 is mounted, else the one of v2. */
function hierarchies(): readonly string[] {
  if (existsSync(join(MOUNTED, 'cgroup.controllers'))) return [MOUNTED]
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
