/** `npm run build:hook`: builds the static helper for every architecture, as `hook/Dockerfile` does. Needs Go. */
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ARCHITECTURES, buildGo, type Architecture } from './go.ts'

const ROOT = join(import.meta.dirname, '..')

/** Returns the path of the built program. */
export const hookPath = (architecture: Architecture): string =>
  join(ROOT, 'dist/hook', `apisix-drain-hook-linux-${architecture}`)

/** @throws Error with Go's output */
export function buildHook(architecture: Architecture): void {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  mkdirSync(join(ROOT, 'dist/hook'), { recursive: true })
  buildGo(join(ROOT, 'hook'), hookPath(architecture), architecture, `-s -w -X main.version=${version}`)
}

if (import.meta.main) {
  for (const architecture of ARCHITECTURES) {
    buildHook(architecture)
    console.log(`${hookPath(architecture)}: ${statSync(hookPath(architecture)).size} bytes`)
  }
}
