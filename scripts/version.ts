/**
 * The version of every part: `package.json` has it, and the others must agree.
 *
 *     node scripts/version.ts [--is X.Y.Z]
 *
 * Prints `version=X.Y.Z`. Exit code 1: the parts, or the version of `--is`, differ; each of them is named.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = join(import.meta.dirname, '..')

/** Where each part has its version. */
const PLACES: Readonly<Record<string, RegExp>> = {
  'package.json': /^ {2}"version": "(.+)"/m,
  'package-lock.json': /^ {2}"version": "(.+)"/m,
  'charts/apisix-drain/Chart.yaml': /^version: (.+)$/m,
  'charts/apisix-drain/Chart.yaml (appVersion)': /^appVersion: (.+)$/m,
  'plugin-config/apisix/drain/runtime.lua': /"(\d+\.\d+\.\d+)"/
}

/** The version of each place; `undefined` where none was found. The helper gets that of package.json when it is built. */
export const versions = (read = (path: string) => readFileSync(join(ROOT, path), 'utf8')) =>
  Object.entries(PLACES).map(([place, pattern]) => ({
    place,
    version: pattern.exec(read(place.split(' ')[0] ?? ''))?.[1]
  }))

/** One line for each place that differs from the version of package.json, or from `wanted`. */
export function differences(found: ReturnType<typeof versions>, wanted = found[0]?.version): string[] {
  return found
    .filter(({ version }) => version !== wanted)
    .map(({ place, version }) => `${place}: has ${version ?? 'no version'}, and not ${wanted}`)
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { is: { type: 'string' }, help: { type: 'boolean' } } })
  if (values.help) {
    console.log('node scripts/version.ts [--is X.Y.Z]: prints the version of all parts, or where they differ')
  } else {
    const found = versions()
    const wrong = differences(found, values.is)
    if (wrong.length === 0) console.log(`version=${found[0]?.version}`)
    else {
      console.error(wrong.join('\n'))
      process.exitCode = 1
    }
  }
}
