import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const SOURCES = join(import.meta.dirname, '../app')

/** Builds the app of the suite into that file, static. @throws Error with what Go said */
export function buildApp(file: string): void {
  const { status, stderr, error } = spawnSync('go', ['build', '-trimpath', '-o', file, '.'], {
    cwd: SOURCES,
    env: { ...process.env, GOFLAGS: '-buildvcs=false', CGO_ENABLED: '0' },
    encoding: 'utf8'
  })
  if (status !== 0) throw new Error(`go build: ${error?.message ?? stderr}`)
}
