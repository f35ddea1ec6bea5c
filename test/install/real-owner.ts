import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../sandbox/kubernetes/store.ts'
import { now } from '../../sandbox/now.ts'
import { upstreamId, type Owner, type OwnerWrite } from '../../sandbox/owner/owner.ts'
import { callAdmin } from '../../sandbox/owner/put.ts'
import type { UpstreamNode } from '../../sandbox/owner/slices.ts'
import type { OwnerContext } from '../../sandbox/owner/start.ts'
import type { ApiServer } from './api-server.ts'
import { startController, type Controller } from './controller.ts'
import { mirrorSlices } from './mirror.ts'
import { apisixRoute } from './routes.ts'
import { translateAdmin, type Passed } from './translate.ts'

export interface RealOwner extends Owner {
  /** The processes of the controller. A test may stop them and start more. */
  readonly controllers: Controller[]
  /** Every request of these processes to the Admin API. */
  readonly passed: readonly Passed[]
  /** Starts one more process. */
  start(): Controller
}

const POLL_MS = 50

/**
 * Starts the real ingress controller 1.8 as the owner of a sandbox. It sees copies of the sandbox's EndpointSlices in a real API
 * server, and writes through the Admin API stand-in. Polls find its writes.
 */
export async function startRealOwner(
  api: ApiServer,
  kubernetes: Store,
  { gateways: { admin }, service }: OwnerContext
): Promise<RealOwner> {
  const { namespace, name, port } = service
  const inNamespace = `namespaces/${namespace}`
  await api.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  // These objects exist already if another world used the API server before.
  const spec = { ports: [{ name: 'http', port, targetPort: 'http' }] }
  await api.call('POST', `/api/v1/${inNamespace}/services`, { metadata: { name }, spec })
  await api.call('POST', `/apis/apisix.apache.org/v2/${inNamespace}/apisixroutes`, apisixRoute(name, port))
  const translated = await translateAdmin(admin.url)
  const endMirror = mirrorSlices(
    {
      list: () => kubernetes.list('endpointslices'),
      onChange: listener => kubernetes.onChange('endpointslices', ({ object }) => listener(object))
    },
    api
  )
  const controllers: Controller[] = []
  const start = () => {
    const controller = startController({
      kubeconfig: api.kubeconfig,
      admin: { url: translated.url, key: admin.key }
    })
    controllers.push(controller)
    return controller
  }
  start()

  const writes: OwnerWrite[] = []
  const stopped = new AbortController()
  const poll = async () => {
    while (!stopped.signal.aborted) {
      const at = now()
      const answer = await callAdmin(admin, {
        method: 'GET',
        path: `upstreams/${upstreamId(service)}`
      }).catch(() => undefined)
      const nodes = (answer as { value: { nodes: UpstreamNode[] } } | undefined)?.value.nodes
      if (nodes && JSON.stringify(nodes) !== JSON.stringify(writes.at(-1)?.nodes))
        writes.push({ service: `${namespace}/${name}`, eventAt: at, acceptedAt: now(), nodes })
      await sleep(POLL_MS)
    }
  }
  const polling = poll()
  return {
    writes,
    controllers,
    passed: translated.passed,
    start,
    async close() {
      stopped.abort()
      await polling
      for (const controller of controllers) await controller.stop()
      translated.close()
      await endMirror()
    }
  }
}
