import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/** The rows of a YAML table, at a path relative to the test (`import.meta.url`). */
export const rowsOf = (path: string, test: string): unknown =>
  parse(readFileSync(new URL(path, test), 'utf8'))
