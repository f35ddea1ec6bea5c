import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MEASURES, type Figures } from './against-measure.ts'
import type { Row } from './table.ts'

export interface AgainstOptions {
  readonly revision: string
  /** The measures to take: `overhead`, `at-once`, `watch`. */
  readonly names: readonly string[]
  /** How many pairs of measurements are taken. */
  readonly rounds: number
  readonly tell: (step: string) => void
}

/** A ratio above this is shown as missed. */
const MOST = 1.1
const MEASURE = fileURLToPath(new URL('against-measure.ts', import.meta.url))
const HERE = resolve(import.meta.dirname, '../..')

/**
 * Measures this tree and a revision in turn, in pairs whose order changes, so that a slow moment of the machine affects both. Returns for
 * each figure the medians, and the median and the spread of the ratios of the pairs.
 * @throws Error if the revision does not exist, or a measurement fails
 */
export async function against({ revision, names, rounds, tell }: AgainstOptions): Promise<readonly Row[]> {
  const that = checkOut(revision, tell)
  try {
    const rows: Row[] = []
    for (const name of names) {
      const pairs: [Figures, Figures][] = []
      for (let round = 1; round <= rounds; round += 1) {
        const trees = round % 2 === 1 ? [that.folder, HERE] : [HERE, that.folder]
        const results: Figures[] = []
        for (const tree of trees) {
          tell(`${name}, round ${round} of ${rounds}, ${tree === HERE ? 'this tree' : revision}`)
          results.push(await measureIn(tree, name))
        }
        const [first, second] = results as [Figures, Figures]
        pairs.push(round % 2 === 1 ? [first, second] : [second, first])
      }
      rows.push(...rowsOf(pairs, revision))
    }
    return rows
  } finally {
    that.remove()
  }
}

/** Compares pairs of figures, each of [the revision, this tree]. */
export function rowsOf(pairs: readonly (readonly [Figures, Figures])[], revision: string): readonly Row[] {
  return Object.keys(pairs[0]?.[1] ?? {}).map((figure): Row => {
    const of = (side: 0 | 1) => pairs.map(pair => pair[side][figure] ?? Number.NaN)
    const ratios = pairs.map(([that, here]) => (here[figure] ?? Number.NaN) / (that[figure] ?? Number.NaN))
    const ratio = median(ratios)
    return {
      figure,
      [`${revision}, ms`]: hundredths(median(of(0))),
      'this tree, ms': hundredths(median(of(1))),
      ratio: hundredths(ratio),
      'ratios of the pairs': `${hundredths(Math.min(...ratios))} to ${hundredths(Math.max(...ratios))}`,
      [`at most ${MOST}`]: ratio <= MOST ? 'met' : '**missed**'
    }
  })
}

async function measureIn(tree: string, name: string): Promise<Figures> {
  const child = fork(MEASURE, [tree, name], { cwd: tree, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ended = once(child, 'exit')
  const [figures] = (await Promise.race([once(child, 'message'), ended.then(() => [])])) as [Figures?]
  await ended
  if (!figures) throw new Error(`${name} failed in ${tree}: see above`)
  return figures
}

/** The revision in a folder of its own. Its packages are those of this tree, unless its lock file differs. */
function checkOut(revision: string, tell: (step: string) => void) {
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: HERE, encoding: 'utf8' }).trim()
  const commit = commitOf(revision)
  const folder = join(mkdtempSync(join(tmpdir(), 'apisix-drain-against-')), 'tree')
  git('worktree', 'add', '--quiet', '--detach', folder, commit)
  const lock = (tree: string) => readFileSync(join(tree, 'package-lock.json'), 'utf8')
  if (lock(folder) === lock(HERE)) symlinkSync(join(HERE, 'node_modules'), join(folder, 'node_modules'))
  else {
    tell(`npm ci, for the packages of ${revision}`)
    execFileSync('npm', ['ci', '--silent'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  }
  return {
    folder,
    remove() {
      git('worktree', 'remove', '--force', folder)
      rmSync(resolve(folder, '..'), { recursive: true, force: true })
    }
  }
}

function commitOf(revision: string): string {
  try {
    const args = ['rev-parse', '--verify', '--quiet', `${revision}^{commit}`]
    return execFileSync('git', args, { cwd: HERE, encoding: 'utf8' }).trim()
  } catch {
    throw new Error(
      `--against ${revision}: this repository has no such revision; give a commit, a tag or a branch`
    )
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const hundredths = (value: number): number => Math.round(value * 100) / 100

/** The names of all measures. */
export const AGAINST: readonly string[] = Object.keys(MEASURES)
