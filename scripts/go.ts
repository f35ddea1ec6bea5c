import { spawnSync } from 'node:child_process'

export const ARCHITECTURES = ['amd64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** Of this machine. */
export const architecture: Architecture = process.arch === 'x64' ? 'amd64' : 'arm64'

/**
 * Builds the program in that folder into a file: static, for Linux, without what only a debugger needs where no other linker
 * flags are given. Go's own cache makes this quick where nothing has changed.
 *
 * @throws Error with what Go said
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
