import { readNodes } from '../../../sandbox/apisix/nodes.ts'
import { keyOf } from '../../../sandbox/apisix/store.ts'
import { now } from '../../../sandbox/now.ts'
import { upstreamId, type OwnerWrite } from '../../../sandbox/owner/owner.ts'
import { apisixRoute, ingress } from '../../install/routes.ts'
import { eventually } from '../../plugin/eventually.ts'
import { follow } from '../gateway/follow.ts'
import { kube } from '../scenario.ts'
import { world } from '../setup.ts'
import type { StartOwner } from '../world.ts'

const ROUTES = { ApisixRoute: apisixRoute, Ingress: ingress } as const

/**
 * Returns a starter of the owner: it makes a route of this kind, for which the running ingress controller writes the upstream.
 * Its `writes` come from the store, so they include the agent's writes.
 */
export const controllerOwns =
  (kind: keyof typeof ROUTES, replicas: number): StartOwner =>
  async service => {
    const { namespace, name, port } = service
    // Controller 1.8 once missed a change of the Endpoints that came while it made the upstream.
    await kube('rollout', 'status', `deployment/${name}`, '--timeout=120s')
    const listed = () => kube('get', 'endpoints', name, '--output=jsonpath={.subsets[*].addresses[*].ip}')
    await eventually(
      `all pods are Endpoints of ${name}`,
      async () => (await listed()).split(' ').length === replicas
    )
    await world().kube.apply({ ...ROUTES[kind](name, port), metadata: { namespace, name } })
    const writes: OwnerWrite[] = []
    const stopped = new AbortController()
    const key = keyOf('upstreams', upstreamId(service))
    const note = (event: Parameters<Parameters<typeof follow>[1]>[0]) => {
      if (event.kind !== 'put' || event.item.key !== key) return Promise.resolve()
      const read = readNodes(event.item.value['nodes'])
      const nodes = read.map(({ host, port = 80, weight }) => ({ host, port, weight }))
      writes.push({ service: `${namespace}/${name}`, eventAt: now(), acceptedAt: now(), nodes })
      return Promise.resolve()
    }
    const following = follow(world().gateways.writes, note, stopped.signal)
    return {
      writes,
      async close() {
        stopped.abort()
        await following
        await kube('delete', kind.toLowerCase(), name)
      }
    }
  }
