/**
 * The version of every part: `package.json` has it, and the others must agree.
 *
 *     node scripts/version.ts [--is X.Y.Z]
 *
 * Prints `version=X.Y.Z`. Exits 1 if a part differs from the others or from `--is`, and names each such part.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = join(import.meta.dirname, '..')

/** Matches the version in the tag of an image, in the name of the plugin's ConfigMap, and in options of commands. */
const IN_COMMANDS =
  /(?:apisix-drain(?:-hook)?:|apisix-drain-lua-|--build-arg VERSION=|--version )(\d+\.\d+\.\d+)/g

/** Where each part has its version, and the commands that name it. */
const PLACES: Readonly<Record<string, RegExp>> = {
  'package.json': /^ {2}"version": "(.+)"/gm,
  'package-lock.json': /^ {2}"version": "(.+)"/gm,
  'charts/apisix-drain/Chart.yaml': /^version: (.+)$/gm,
  'charts/apisix-drain/Chart.yaml (appVersion)': /^appVersion: (.+)$/gm,
  'plugin-config/apisix/drain/runtime.lua': /"(\d+\.\d+\.\d+)"/g,
  'plugin-config/helm-values.yaml': /apisix-drain-lua-(\d+\.\d+\.\d+)/g,
  'README.md': IN_COMMANDS,
  'docs/install.md': IN_COMMANDS,
  'docs/hooks.md': IN_COMMANDS
}

/**
 * Returns the version of each place: `undefined` if the place has none, and all of them if they differ. The helper is not a place: it gets
 * the version of package.json when it is built.
 */
export const versions = (read = (path: string) => readFileSync(join(ROOT, path), 'utf8')) =>
  Object.entries(PLACES).map(([place, pattern]) => {
    const found = [...read(place.split(' ')[0] ?? '').matchAll(pattern)].map(([, version]) => version)
    return { place, version: found.length > 0 ? [...new Set(found)].join(' and ') : undefined }
  })

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
