import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Said {
  readonly ok: boolean
  /** The whole output of promtool. */
  readonly text: string
}

/**
 * Runs promtool, Prometheus' own tool, in a folder with these files.
 *
 * @throws Error if promtool is not installed
 */
export function promtool(
  args: readonly string[],
  files: Readonly<Record<string, string>> = {},
  input = ''
): Said {
  const cwd = mkdtempSync(join(tmpdir(), 'promtool-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
    const { status, stdout, stderr, error } = spawnSync('promtool', args, {
      cwd,
      input,
      encoding: 'utf8',
      timeout: 60_000,
      maxBuffer: 2 ** 26
    })
    if (error) throw new Error(`${error.message}; apt-get install --no-install-recommends prometheus`)
    return { ok: status === 0, text: stdout + stderr }
  } finally {
    rmSync(cwd, { recursive: true })
  }
}
