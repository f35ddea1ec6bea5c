/**
 * The programs and schemas of this suite. They are built from Go modules into a cache outside the project, once for each
 * version. As a script, this file builds the missing programs and schemas, and prints how long that took.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'

const TOOLS = {
  helm: { module: 'helm.sh/helm/v3/cmd/helm', version: 'v3.22.0' },
  kubeconform: { module: 'github.com/yannh/kubeconform/cmd/kubeconform', version: 'v0.8.0' },
  actionlint: { module: 'github.com/rhysd/actionlint/cmd/actionlint', version: 'v1.7.12' },
  'helm-docs': { module: 'github.com/norwoodj/helm-docs/cmd/helm-docs', version: 'v1.14.2' }
} as const

/** The sources of the API's descriptions: the oldest Kubernetes that the chart supports, and a current one. */
export const KUBERNETES = ['v1.29.15', 'v1.37.2'] as const
export const PROMETHEUS_OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0'
export const CERT_MANAGER = 'github.com/cert-manager/cert-manager@v1.21.2'

export type Tool = keyof typeof TOOLS

export const CACHE = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'apisix-drain')

const PROMETHEUS = 'v0.315.0'
/** Prometheus' parser of expressions, as a program. */
export const PROMQL = join(CACHE, 'bin', `promql-${PROMETHEUS}`)

const GRAFANA_SDK = 'v0.0.22'
/** Grafana's own schema of dashboards, as a program. */
export const GRAFANA = join(CACHE, 'bin', `grafana-${GRAFANA_SDK}`)

/** The time limit of a build, in ms. A cold build of helm took six minutes on two busy cores. */
const BUILD_MS = 30 * 60_000

/** Returns the path of the program. The program exists once this file has run as a script. */
export const toolPath = (name: Tool): string => join(CACHE, 'bin', `${name}-${TOOLS[name].version}`)

/** @throws Error with Go's output if the program cannot be built */
export function ensureTool(name: Tool): void {
  const path = toolPath(name)
  if (existsSync(path)) return
  const { module, version } = TOOLS[name]
  mkdirSync(join(CACHE, 'bin'), { recursive: true })
  // The program is built in another folder and then moved, so that another run never sees half of it.
  const building = mkdtempSync(join(CACHE, 'bin', '.building-'))
  const begun = Date.now()
  console.log(`building ${name} ${version} into ${CACHE}`)
  try {
    go(['install', '-trimpath', '-ldflags=-s -w', `${module}@${version}`], { GOBIN: building })
    renameSync(join(building, name), path)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  console.log(`built ${name} in ${Math.round((Date.now() - begun) / 1000)} s`)
}

/** A program that `go install` cannot build, because it is our own or its module has replacements. */
export interface ModuleProgram {
  readonly path: string
  /** Lines of go.mod: requirements and replacements. */
  readonly module: () => readonly string[]
  /** Our main.go, if the program is not a package of a required module. */
  readonly main?: string
  /** The package to build. */
  readonly what: string
  readonly linkerFlags?: string
}

/** @throws Error with Go's output if the program cannot be built */
export function ensureModuleProgram({ path, module, main, what, linkerFlags = '' }: ModuleProgram): void {
  if (existsSync(path)) return
  const name = basename(path)
  const begun = Date.now()
  const folder = join(CACHE, 'build', name)
  mkdirSync(folder, { recursive: true })
  mkdirSync(join(CACHE, 'bin'), { recursive: true })
  writeFileSync(join(folder, 'go.mod'), ['module build', 'go 1.26.0', ...module(), ''].join('\n'))
  if (main !== undefined) writeFileSync(join(folder, 'main.go'), main)
  console.log(`building ${name} into ${CACHE}`)
  // Two runs may build the program at the same time, because CI starts long builds early. So each has its own output file.
  const built = `program-${process.pid}`
  go(['build', '-mod=mod', '-trimpath', `-ldflags=-s -w ${linkerFlags}`, '-o', built, what], {}, folder)
  renameSync(join(folder, built), path)
  console.log(`built ${name} in ${Math.round((Date.now() - begun) / 1000)} s`)
}

/** The folder of a module's source, read only. */
export function moduleFolder(moduleAtVersion: string): string {
  const { Dir } = JSON.parse(go(['mod', 'download', '-json', moduleAtVersion])) as { Dir: string }
  return Dir
}

/** @throws Error with Go's output */
function go(args: readonly string[], env: Record<string, string> = {}, cwd: string = CACHE): string {
  mkdirSync(cwd, { recursive: true })
  const { status, stdout, stderr, error } = spawnSync('go', args, {
    cwd,
    // GOFLAGS is empty, because the user's flags are not for these programs.
    env: { ...process.env, GOFLAGS: '', GO111MODULE: 'on', ...env },
    encoding: 'utf8',
    timeout: BUILD_MS,
    maxBuffer: 2 ** 26
  })
  if (status !== 0) throw new Error(`go ${args.join(' ')}: ${error?.message ?? stderr}`)
  return stdout
}

if (import.meta.main) {
  for (const name of Object.keys(TOOLS) as Tool[]) ensureTool(name)
  const programs = [
    ['promql', PROMQL, `github.com/prometheus/prometheus ${PROMETHEUS}`],
    ['grafana', GRAFANA, `github.com/grafana/grafana-foundation-sdk/go ${GRAFANA_SDK}`]
  ] as const
  for (const [name, path, module] of programs)
    ensureModuleProgram({
      path,
      module: () => [`require ${module}`],
      main: readFileSync(join(import.meta.dirname, name, 'main.go'), 'utf8'),
      what: '.'
    })
}
