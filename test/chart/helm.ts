import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { toolPath } from './tools.ts'

export const CHART = join(import.meta.dirname, '../../charts/apisix-drain')
export const CI = join(CHART, 'ci')

/** The Kubernetes version for which templates are rendered without a cluster. */
const KUBERNETES = '1.36.0'

export interface Outcome {
  readonly ok: boolean
  readonly stdout: string
  readonly stderr: string
}

/** Values as `--set-json` takes them: `{ 'config.apisix.barrier': {} }`. */
export type Values = Readonly<Record<string, unknown>>

/** Any Kubernetes object, with the fields that tests read. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly [field: string]: unknown
}

export function helm(...args: readonly string[]): Outcome {
  // helm gets its own home, so that it uses no plugin, repository or registry login of the user.
  const home = mkdtempSync(join(tmpdir(), 'helm-'))
  try {
    const { status, stdout, stderr, error } = spawnSync(toolPath('helm'), args, {
      encoding: 'utf8',
      timeout: 60_000,
      maxBuffer: 2 ** 26,
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        HELM_CACHE_HOME: join(home, 'cache'),
        HELM_CONFIG_HOME: join(home, 'config'),
        HELM_DATA_HOME: join(home, 'data'),
        KUBECONFIG: join(home, 'none')
      }
    })
    if (error) throw new Error(`${error.message}; npm run test:chart builds helm first`)
    return { ok: status === 0, stdout, stderr }
  } finally {
    rmSync(home, { recursive: true })
  }
}

/** Runs `helm template` for release apisix-drain in namespace apisix. Returns the result, also if helm fails. */
export function tryTemplate(values: Values = {}, file?: string, kubernetes = KUBERNETES): Outcome {
  const sets = Object.entries(values).map(([path, value]) => `--set-json=${path}=${JSON.stringify(value)}`)
  const files = file === undefined ? [] : [`--values=${join(CI, file)}`]
  const release = ['apisix-drain', CHART, '--namespace=apisix', `--kube-version=${kubernetes}`]
  return helm('template', ...release, ...files, ...sets)
}

/** @throws Error with helm's message if it renders nothing */
export function render(values: Values = {}, file?: string): readonly Manifest[] {
  const { ok, stdout, stderr } = tryTemplate(values, file)
  if (!ok) throw new Error(stderr)
  return parseAllDocuments(stdout, { uniqueKeys: true }).flatMap(document => {
    const [error] = document.errors
    if (error) throw error
    const object = document.toJS() as Manifest | null
    return object === null ? [] : [object]
  })
}

/** Without what is on by default besides the agent. */
export const BARE: Values = {
  'plugin.enabled': false,
  'config.serve.dashboard.enabled': false,
  'injection.policy.enabled': false
}
export const bare = (values: Values = {}): readonly Manifest[] => render({ ...BARE, ...values })

/** The webhook, with a certificate that `helm template` need not make. */
export const WEBHOOK: Values = {
  'injection.webhook.enabled': true,
  'tls.webhook.existingSecret': 'mine',
  'tls.webhook.caBundle': '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----'
}

/** Returns the only object of this kind. Throws if there are none or several. */
export function only(manifests: readonly Manifest[], kind: string): Manifest {
  const [found, ...more] = manifests.filter(manifest => manifest.kind === kind)
  if (!found || more.length > 0)
    throw new Error(`${found ? more.length + 1 : 0} objects are a ${kind}, not one`)
  return found
}

export const kinds = (manifests: readonly Manifest[]): readonly string[] =>
  manifests.map(({ kind }) => kind).toSorted()
