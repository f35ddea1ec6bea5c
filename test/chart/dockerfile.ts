import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join, posix } from 'node:path'

export interface Instruction {
  readonly name: string
  readonly text: string
}

/** Reads the instructions of the Dockerfile, which must be one per line. */
export function readDockerfile(path: string): readonly Instruction[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => /^[A-Z]+ /.test(line))
    .map(line => ({ name: line.slice(0, line.indexOf(' ')), text: line.slice(line.indexOf(' ') + 1) }))
}

/**
 * Runs the instructions, each stage in its own folder below `folder`, with the Node.js of this process. Returns
 * the work folder of the last stage: the image's /app.
 *
 * @throws Error with the output of a RUN that failed
 */
export function build(instructions: readonly Instruction[], context: string, folder: string): string {
  const stages = new Map<string, string>()
  let stage = folder
  let work = '/'
  const inside = (path: string) => join(stage, posix.resolve(work, path))
  for (const { name, text } of instructions) {
    if (name === 'FROM') {
      stage = join(folder, String(stages.size))
      stages.set(/ AS (\S+)$/.exec(text)?.[1] ?? 'image', stage)
      work = '/'
    } else if (name === 'WORKDIR') {
      work = text
      mkdirSync(inside('.'), { recursive: true })
    } else if (name === 'COPY') {
      const [, from] = /^--from=(\S+) /.exec(text) ?? []
      const paths = text.replace(/^--from=\S+ /, '').split(' ')
      const to = paths.at(-1) ?? ''
      for (const path of paths.slice(0, -1)) {
        const source = join(from === undefined ? context : (stages.get(from) ?? ''), path)
        cpSync(source, inside(to.endsWith('/') ? join(to, basename(path)) : to), { recursive: true })
      }
    } else if (name === 'RUN') {
      const run = spawnSync('sh', ['-c', text], { cwd: inside('.'), encoding: 'utf8', timeout: 240_000 })
      if (run.status !== 0) throw new Error(`RUN ${text}\n${run.stdout}${run.stderr}`)
    }
  }
  return inside('.')
}
