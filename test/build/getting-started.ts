import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One numbered step of README.md's "Getting started on a cluster". */
export interface Step {
  /** Such as `2. The Secrets`. */
  readonly title: string
  /** The commands as README.md has them. A command that continues on the next line is one item. */
  readonly commands: readonly string[]
}

const FILE = join(import.meta.dirname, '../../README.md')
const STEP = /^\*\*(\d\. .+?)\.?\*\*.*?```sh\n(.*?)```/gms

/** The steps that a new user follows, in their order. */
export function steps(readme = readFileSync(FILE, 'utf8')): readonly Step[] {
  const [, section = ''] = readme.split('\n## Getting started on a cluster\n')
  const [text = ''] = section.split('\n## ')
  return [...text.matchAll(STEP)].map(([, title = '', commands = '']) => ({
    title,
    commands: commands.trim().split(/(?<!\\)\n/)
  }))
}
