/**
 * Makes the files of a release, in `dist/release`: the chart (with the registry of its images, and the repository), the helper for each
 * architecture, the plugin, the SBOM of the agent's production dependencies, and SHA256SUMS of all these files. Needs helm, Go, npm and tar.
 *
 *     node scripts/release.ts [--registry ghcr.io/OWNER] [--repository https://github.com/OWNER/NAME]
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { ARCHITECTURES } from './go.ts'
import { buildHook, hookPath } from './hook.ts'
import { versions } from './version.ts'

const ROOT = join(import.meta.dirname, '..')

interface Release {
  /** The registry of the images, without a slash at the end. If it is left out, the chart keeps its default. */
  readonly registry?: string | undefined
  /** The URL of the sources, for the chart's `home` and `sources`. If it is left out, the chart has neither. */
  readonly repository?: string | undefined
  readonly helm?: string
  /** Default: `dist/release` of the project. It is emptied first. */
  readonly folder?: string
}

/** @throws Error with the output of a program that failed */
function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 2 ** 26
  })
  if (status !== 0) throw new Error(`${program} ${args[0]}: ${error?.message ?? stderr}`)
  return stdout
}

/**
 * Packages the chart into the folder. If a registry is given, the values of the packaged chart name it, and so does its description with the
 * repository.
 *
 * @throws Error with the output of helm
 */
export function packageChart({
  registry,
  repository,
  helm = 'helm',
  folder = join(ROOT, 'dist/release')
}: Release): void {
  const copy = join(folder, 'apisix-drain')
  cpSync(join(ROOT, 'charts/apisix-drain'), copy, { recursive: true })
  if (registry !== undefined) {
    const file = join(copy, 'values.yaml')
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replaceAll(/^( +repository: )(apisix-drain(?:-hook)?)$/gm, `$1${registry}/$2`))
  }
  if (repository !== undefined) {
    const places = `home: ${repository}\nsources: [${repository}]\n`
    writeFileSync(join(copy, 'Chart.yaml'), places, { flag: 'a' })
  }
  run(helm, ['package', copy, '--destination', folder])
  rmSync(copy, { recursive: true })
}

/** @throws Error with the output of a program that failed */
export function makeRelease(release: Release): void {
  const { folder = join(ROOT, 'dist/release') } = release
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const version = versions()[0]?.version ?? ''
  packageChart(release)
  for (const architecture of ARCHITECTURES) {
    buildHook(architecture)
    copyFileSync(hookPath(architecture), join(folder, basename(hookPath(architecture))))
  }
  // With these options, the same commit gives the same bytes.
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
  run('tar', [
    ...same,
    '-czf',
    join(folder, `apisix-drain-plugin-${version}.tgz`),
    'plugin-config',
    'LICENSE'
  ])
  const sbom = run('npm', ['sbom', '--omit=dev', '--sbom-format=spdx', '--package-lock-only'])
  writeFileSync(join(folder, `apisix-drain-${version}.spdx.json`), sbom)
  const sums = readdirSync(folder).map(name => {
    const digest = createHash('sha256').update(readFileSync(join(folder, name)))
    return `${digest.digest('hex')}  ${name}\n`
  })
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))
}

if (import.meta.main) {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ options: { registry: text, repository: text, help: { type: 'boolean' } } })
  if (values.help)
    console.log(
      'node scripts/release.ts [--registry ghcr.io/OWNER] [--repository URL]: the files of a release, in dist/release'
    )
  else makeRelease(values)
}
