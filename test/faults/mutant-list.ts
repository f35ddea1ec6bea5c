import { rowsOf } from '../build/rows.ts'
import type { NamedEdit } from './replace-by-name.ts'

/** A change of the plugin, in `plugin-config/apisix/drain/`. */
export interface LuaEdit {
  readonly file: string
  /** A text that the file has once. */
  readonly from: string
  readonly to: string
}

/** An agent or a plugin that is broken in one place, and the failure that must follow. */
export interface Mutant {
  readonly name: string
  /** Each file is a path from `agent/`. */
  readonly edits?: readonly NamedEdit[]
  readonly lua?: readonly LuaEdit[]
  readonly found: FoundByRuns | FoundByTest
}

/** How random runs find the mutant. */
export interface FoundByRuns {
  /** The message that the suite must report. */
  readonly expected: RegExp
  /** The only faults, modes and moments that are drawn, so that a few runs are enough. */
  readonly only: readonly string[]
}

/** A test that finds the mutant. Random runs find such a mutant never, or once in thousands of runs. */
export interface FoundByTest {
  readonly file: string
  readonly title: string
}

type Row = Omit<Mutant, 'found'> & {
  readonly found: FoundByTest | (Omit<FoundByRuns, 'expected'> & { readonly expected: string })
}

export const MUTANTS: readonly Mutant[] = (rowsOf('./mutants.yaml', import.meta.url) as readonly Row[]).map(
  ({ found, ...mutant }) => ({
    ...mutant,
    found: 'file' in found ? found : { ...found, expected: new RegExp(found.expected) }
  })
)
