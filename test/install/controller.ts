import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { ApiServer } from './api-server.ts'
import { kindsFolder, PROGRAM } from './controller-build.ts'

/** Creates the controller's own kinds of objects (ApisixRoute and others), from its module. */
export async function createKinds(api: Pick<ApiServer, 'call'>): Promise<void> {
  const folder = kindsFolder()
  for (const file of readdirSync(folder).filter(name => name.startsWith('Apisix')))
    for (const document of parseAllDocuments(readFileSync(join(folder, file), 'utf8'))) {
      const { status, json } = await api.call(
        'POST',
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
        document.toJS()
      )
      if (status !== 201) throw new Error(`${file}: ${status} ${JSON.stringify(json)}`)
    }
}

export interface ControllerOptions {
  readonly kubeconfig: string
  /** Such as `http://127.0.0.1:9180`. */
  readonly admin: { readonly url: string; readonly key: string }
  /** Makes the controller read EndpointSlices. By default it reads Endpoints, as with the settings of its chart. */
  readonly slices?: boolean
}

export interface Controller {
  readonly pid: number
  log(): string
  /** Freezes the process; `resume` continues it. */
  pause(): void
  resume(): void
  /** Ends the process; default: with SIGTERM. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Starts the real ingress controller 1.8 with an API server and an Admin API. */
export function startController({ kubeconfig, admin, slices = false }: ControllerOptions): Controller {
  const folder = mkdtempSync(join(tmpdir(), 'ingress-controller-'))
  const file = join(folder, 'log')
  const log = openSync(file, 'w')
  const child = spawn(
    PROGRAM,
    [
      'ingress',
      `--kubeconfig=${kubeconfig}`,
      `--default-apisix-cluster-base-url=${admin.url}/apisix/admin`,
      `--default-apisix-cluster-admin-key=${admin.key}`,
      '--apisix-admin-api-version=v3',
      '--http-listen=127.0.0.1:0',
      '--https-listen=127.0.0.1:0',
      `--watch-endpointslices=${slices}`
    ],
    // POD_NAME names the controller's pod; POD_NAMESPACE is the namespace of its Lease.
    {
      stdio: ['ignore', log, log],
      cwd: folder,
      env: { ...process.env, POD_NAMESPACE: 'default', POD_NAME: `c-${process.hrtime.bigint()}` }
    }
  )
  closeSync(log)
  const { pid } = child
  if (pid === undefined) throw new Error(`${PROGRAM} did not start`)
  const ended = once(child, 'exit')
  return {
    pid,
    log: () => readFileSync(file, 'utf8'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal)
        const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
        await ended
        clearTimeout(late)
      }
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
