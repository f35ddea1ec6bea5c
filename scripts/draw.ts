import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { createRandom } from '../sandbox/random.ts'

const USAGE = `node scripts/draw.ts [--seed N] [--lines N]

Prints comment lines of the tree, drawn by the seed: a reviewer reads each once. The same tree and seed give the same lines.

  --seed N    default 1
  --lines N   how many; default 100`

const options = { seed: { type: 'string', default: '1' }, lines: { type: 'string', default: '100' } } as const
const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } })
const [seed, lines] = [Number(values.seed), Number(values.lines)]
if (values.help || !Number.isInteger(seed) || !Number.isInteger(lines)) {
  console.error(USAGE)
  process.exit(values.help ? 0 : 2)
}

/** The start of a line shows whether it is a comment, so the script needs no parser for each language. */
const COMMENT = { ts: /^\s*(\/\/|\/\*\*?|\*)\s+\S/, lua: /^\s*---?\s*\S/, go: /^\s*\/\/\s+\S/ }
const kindOf = (file: string) => (/\.tsx?$/.test(file) ? 'ts' : file.endsWith('.lua') ? 'lua' : 'go')

const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.lua', '*.go'], { encoding: 'utf8' })
const all = files
  .split('\n')
  .filter(file => file !== '')
  .flatMap(file =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((text, i) => (COMMENT[kindOf(file)].test(text) ? [`${file}:${i + 1}: ${text.trim()}`] : []))
  )
const next = createRandom(seed)
const drawn = Array.from({ length: Math.min(lines, all.length) }, () =>
  all.splice(Math.floor(next() * all.length), 1)
)
console.log(drawn.flat().toSorted().join('\n'))
