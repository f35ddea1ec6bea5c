import { randomBytes } from 'node:crypto'
import { putObject, type AdminAccess } from '../../sandbox/owner/put.ts'
import { Barrier } from '../plugin/barrier.ts'
import { eventually } from '../plugin/eventually.ts'
import type { ControlPlane } from './control-plane.ts'
import { ADMIN_PORT, BARRIER_PORT, FOLLOW_PORT, PROXY_PORT } from './gateway/ports.ts'
import type { Kubectl } from './kubectl.ts'
import { GATEWAY_NAMESPACE, gatewayObjects } from './objects/gateways.ts'

/** Two nginx with the plugin. Their objects have the names, labels and ports of the official chart. */
export interface Gateways {
  readonly admin: AdminAccess
  /** Every write of the Admin API, as the gateways follow them (`gateway/follow.ts`). */
  readonly writes: string
  /** The base URL of each gateway. */
  readonly proxies: readonly string[]
  /** The Barrier API of the first one. */
  readonly barrier: Barrier
}

const REPLICAS = 2

export async function startGateways(kube: Kubectl, controlPlane: ControlPlane): Promise<Gateways> {
  const keys = { adminKey: randomBytes(16).toString('hex'), barrierToken: randomBytes(32).toString('hex') }
  await kube.apply(...gatewayObjects(REPLICAS, keys))
  for (const name of ['apisix-store', 'apisix'])
    await kube('rollout', 'status', `deployment/${name}`, `--namespace=${GATEWAY_NAMESPACE}`, '--timeout=60s')
  const addresses = async (selector: string) => {
    const path = `/api/v1/namespaces/${GATEWAY_NAMESPACE}/pods?labelSelector=${selector}`
    const { items } = (await controlPlane.call('GET', path)).json as {
      items: { status: { podIP: string } }[]
    }
    return items.map(({ status }) => status.podIP)
  }
  const [store = ''] = await addresses('app=apisix-store')
  const admin = { url: `http://${store}:${ADMIN_PORT}`, key: keys.adminKey }
  // APISIX answers 503 until it has a configuration. The first write gives the store one.
  await eventually('the Admin API takes a write', async () => {
    await putObject(admin, 'routes/all', {
      name: 'all',
      uri: '/*',
      upstream: { type: 'roundrobin', nodes: { '127.0.0.1:1': 1 } }
    })
    return true
  })
  const gateways = await addresses('app.kubernetes.io/name=apisix')
  const writes = `http://${store}:${FOLLOW_PORT}`
  return {
    admin,
    writes,
    proxies: gateways.map(address => `http://${address}:${PROXY_PORT}`),
    barrier: new Barrier(`http://${gateways[0]}:${BARRIER_PORT}`, keys.barrierToken)
  }
}
