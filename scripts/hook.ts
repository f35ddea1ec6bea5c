/** `npm run build:hook`: the static helper for every architecture, as `hook/Dockerfile` builds it. Needs Go. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = join(ROOT, 'hook')

export const ARCHITECTURES = ['amd64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** Where the program is, once it is built. */
export const hookPath = (architecture: Architecture): string =>
  join(ROOT, 'dist/hook', `apisix-drain-hook-linux-${architecture}`)

/** Go's own cache makes this quick where nothing has changed. @throws Error with what Go said */
export function buildHook(architecture: Architecture): void {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  mkdirSync(join(ROOT, 'dist/hook'), { recursive: true })
  const flags = ['-trimpath', `-ldflags=-s -w -X main.version=${version}`]
  const { status, stderr, error } = spawnSync('go', ['build', ...flags, '-o', hookPath(architecture), '.'], {
    cwd: SOURCES,
    env: {
      ...process.env,
      GOFLAGS: '-buildvcs=false',
      CGO_ENABLED: '0',
      GOOS: 'linux',
      GOARCH: architecture
    },
    encoding: 'utf8'
  })
  if (status !== 0) throw new Error(`go build: ${error?.message ?? stderr}`)
}

if (import.meta.main) {
  for (const architecture of ARCHITECTURES) {
    buildHook(architecture)
    console.log(`${hookPath(architecture)}: ${statSync(hookPath(architecture)).size} bytes`)
  }
}
