import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** A tar of files, stored under its own digest as in an OCI layout. */
export interface Layer {
  readonly digest: string
  readonly size: number
}

/**
 * Packs files under their absolute paths. A link is packed as its target, and every file belongs to root.
 *
 * @param root the folder that the paths are relative to
 * @param blobs the folder for the layer
 * @throws Error with tar's output
 */
export async function makeLayer(blobs: string, root: string, paths: readonly string[]): Promise<Layer> {
  const file = join(blobs, 'layer.tar')
  const names = paths.map(path => path.replace(/^\/+/, '')).join('\n')
  const args = ['--create', `--file=${file}`, `--directory=${root}`, '--dereference', '--sort=name']
  const { status, stderr } = spawnSync('tar', [...args, '--owner=0', '--group=0', '--files-from=-'], {
    input: names,
    encoding: 'utf8'
  })
  if (status !== 0) throw new Error(`tar of ${root}: ${stderr}`)
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  const digest = hash.digest('hex')
  const { size } = statSync(file)
  renameSync(file, join(blobs, digest))
  return { digest: `sha256:${digest}`, size }
}

/** Returns the paths of the programs and of their shared libraries, as `ldd` reports them. */
export function withLibraries(programs: readonly string[]): string[] {
  const libraries = programs.flatMap(program => {
    const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' })
    return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)
  })
  return [...new Set([...programs, ...libraries])]
}
