import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'apisix-drain-cluster-'
const CGROUPS = '/sys/fs/cgroup'

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
  makeCgroup(state.name)
  makeCgroup(suiteOf(state.name))
  // By default all pods together weigh as much as one process beside them, and starve on a busy machine.
  weigh(state.name, 64)
  // On a host of its own a kubelet and a runtime do not wait for their pods, nor the control plane and the clients on theirs.
  weigh(suiteOf(state.name), 4)
}

/** Puts this process, and what it starts from now on, beside the cgroups of the hosts of that run, and not above them. */
export function enterSuite(name: string): void {
  for (const hierarchy of hierarchies()) {
    const folder = join(hierarchy, suiteOf(name))
    if (WEIGHTS.some(([file]) => existsSync(join(folder, file))))
      writeFileSync(join(folder, 'cgroup.procs'), '0')
  }
}

const suiteOf = (name: string) => `${name}/suite`

/** File and default of each version of cgroups. */
const WEIGHTS = [
  ['cpu.shares', 1024],
  ['cpu.weight', 100]
] as const

/** So many times the default. */
function weigh(name: string, times: number): void {
  for (const [file, weight] of WEIGHTS)
    for (const hierarchy of hierarchies()) {
      const path = join(hierarchy, name, file)
      if (existsSync(path)) writeFileSync(path, String(weight * times))
    }
}

/** In every hierarchy. */
export function makeCgroup(name: string): void {
  for (const hierarchy of hierarchies()) mkdirSync(join(hierarchy, name), { recursive: true })
}

/** Only when no process of that run is left: they go with its PID namespace. */
export function removeState({ name, folder }: State): void {
  for (const hierarchy of hierarchies()) removeCgroup(join(hierarchy, name))
  rmSync(folder, { recursive: true, force: true })
}

/** Removes what runs have left that were killed. Returns their names. */
export function sweep(): readonly string[] {
  const names = [tmpdir(), ...hierarchies()].flatMap(folder =>
    readdirSync(folder).filter(name => name.startsWith(PREFIX))
  )
  const dead = [...new Set(names)]
    .map(name => stateOf(Number(name.slice(PREFIX.length))))
    .filter(({ name }) => !existsSync(`/proc/${name.slice(PREFIX.length)}`))
  for (const state of dead) removeState(state)
  return dead.map(({ name }) => name)
}

/** Each controller's own where cgroup v1 is mounted, else the one of v2. */
function hierarchies(): readonly string[] {
  if (existsSync(join(CGROUPS, 'cgroup.controllers'))) return [CGROUPS]
  return readdirSync(CGROUPS)
    .map(name => join(CGROUPS, name))
    .filter(folder => existsSync(join(folder, 'cgroup.procs')))
}

/** A cgroup's files cannot be removed, only the folders, the innermost first. */
function removeCgroup(folder: string): void {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeCgroup(join(folder, entry.name))
  rmdirSync(folder)
}
