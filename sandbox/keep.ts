import { constants } from 'node:fs'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PodRecord } from './kubelet/record.ts'
import type { LoadResult } from './load/options.ts'
import { now } from './now.ts'
import type { World } from './world.ts'

/**
 * Keeps the files that explain a run, in `<directory>/<arm>/`. `access.log` has each request and the gateways' answer,
 * `admin.log` each call of the Admin API and its client. `facts.json` has failed requests, pods and the owner's writes.
 * The last file is `agent.log`. Times in the facts are those of `now()`; `clock` has one such time and its time of day.
 */
export async function keep(directory: string, arm: string, world: World, load?: LoadResult): Promise<void> {
  const to = join(directory, arm)
  await mkdir(to, { recursive: true })
  const { files, kubelet, owner } = world
  for (const name of ['agent', 'access', 'admin'] as const) {
    const copied = copyFile(files[name], join(to, `${name}.log`), constants.COPYFILE_FICLONE)
    await copied.catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  }
  const facts = {
    clock: { now: now(), epochMs: Date.now() },
    load,
    pods: kubelet.records().map(withCounts),
    ownerWrites: owner.writes
  }
  await writeFile(join(to, 'facts.json'), `${JSON.stringify(facts, undefined, 2)}\n`)
}

/** Replaces thousands of arrivals by their number and the last one. */
const withCounts = ({ arrivals, ...record }: PodRecord) => ({
  ...record,
  arrivals: { count: arrivals.length, last: arrivals.at(-1) }
})
