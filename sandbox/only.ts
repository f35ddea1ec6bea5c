import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from './cli.ts'
import { startGateways } from './gateways/start.ts'
import { startControllers } from './kubernetes/controllers/start.ts'
import { startKubernetes } from './kubernetes/server.ts'

/** One stand-in alone, for other clients. `lines`: instructions for its user. */
export interface Alone {
  readonly lines: readonly string[]
  close(): Promise<void>
}

/** The default admin key of APISIX. Public, like this stand-in. */
const ADMIN_KEY = 'edd1c9f034335f136f87ad84b625c8f1'

export async function onlyApisix(command: Extract<Command, { kind: 'only-apisix' }>): Promise<Alone> {
  const { proxy, admin, control, workers } = command
  const gateways = await startGateways({
    hosts: ['127.0.0.1'],
    proxyPort: proxy,
    adminPort: admin,
    controlPort: control,
    adminKey: ADMIN_KEY,
    workers
  })
  const [gateway] = gateways.gateways
  return {
    close: () => gateways.close(),
    lines: [
      `proxy    ${gateway?.proxy}`,
      `admin    ${gateways.admin.url}   X-API-KEY: ${ADMIN_KEY}`,
      `control  ${gateway?.control}`,
      `try      curl -H 'X-API-KEY: ${ADMIN_KEY}' ${gateways.admin.url}/apisix/admin/upstreams`
    ]
  }
}

export async function onlyKubernetes({
  port
}: Extract<Command, { kind: 'only-kubernetes' }>): Promise<Alone> {
  const kubernetes = await startKubernetes({ port })
  const controllers = startControllers(kubernetes.store)
  const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-sandbox-'))
  const kubeconfig = join(directory, 'kubeconfig')
  await kubernetes.writeKubeconfig(kubeconfig)
  return {
    lines: [
      `server      ${kubernetes.url}`,
      `kubeconfig  ${kubeconfig}`,
      `try         kubectl --kubeconfig ${kubeconfig} get pods -A`
    ],
    async close() {
      controllers.stop()
      await kubernetes.close()
      await rm(directory, { recursive: true, force: true })
    }
  }
}
