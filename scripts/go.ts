import { spawnSync } from 'node:child_process'

export const ARCHITECTURES = ['amd64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** This machine's architecture. */
export const architecture: Architecture = process.arch === 'x64' ? 'amd64' : 'arm64'

/**
 * Builds the program in a folder into a file: static, for Linux, and without debug information unless other linker
 * flags are given. Go's own cache makes this quick if nothing has changed.
 *
 * @throws Error with Go's output
 */
export function buildGo(folder: string, file: string, target: Architecture, linkerFlags = '-s -w'): void {
  const flags = ['-trimpath', `-ldflags=${linkerFlags}`]
  const { status, stderr, error } = spawnSync('go', ['build', ...flags, '-o', file, '.'], {
    cwd: folder,
    env: { ...process.env, GOFLAGS: '-buildvcs=false', CGO_ENABLED: '0', GOOS: 'linux', GOARCH: target },
    encoding: 'utf8'
  })
  if (status !== 0) throw new Error(`go build: ${error?.message ?? stderr}`)
}
