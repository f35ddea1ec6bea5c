import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeCgroup, topCgroups } from './cgroups.ts'
import { makeShares } from './shares.ts'

const PREFIX = 'apisix-drain-cluster-'

/** The files of a run outside its namespaces: a folder, and the cgroup `name` in every hierarchy. */
export interface State {
  readonly name: string
  readonly folder: string
}

/** Returns the state of the run whose main process has this id. */
export const stateOf = (pid: number): State => ({
  name: `${PREFIX}${pid}`,
  folder: join(tmpdir(), `${PREFIX}${pid}`)
})

export const imagesOf = ({ folder }: State): string => join(folder, 'images.tar')

export function makeState(state: State): void {
  mkdirSync(state.folder)
  makeShares(state.name)
}

/** Removes the folder and the cgroup. Call this once no process of the run is left: they end with its PID namespace. */
export function removeState({ name, folder }: State): void {
  removeCgroup(name)
  rmSync(folder, { recursive: true, force: true })
}

/** Removes the folders and cgroups of killed runs, and returns the names of these runs. */
export function sweep(): readonly string[] {
  const names = [...readdirSync(tmpdir()), ...topCgroups()].filter(name => name.startsWith(PREFIX))
  const dead = [...new Set(names)]
    .map(name => stateOf(Number(name.slice(PREFIX.length))))
    .filter(({ name }) => !existsSync(`/proc/${name.slice(PREFIX.length)}`))
  for (const state of dead) removeState(state)
  return dead.map(({ name }) => name)
}
