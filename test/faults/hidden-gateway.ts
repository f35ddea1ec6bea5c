import { startBalancer } from '../build/balancer.ts'
import type { Rig } from '../build/rig.ts'

/**
 * Returns the gateway list of an operator who mistakes a load balancer for a gateway. The list has the address of the rig's
 * first gateway, and one address that leads to all other gateways. One of these is added here.
 */
export async function hideGateway(
  rig: Rig
): Promise<{ readonly settings: Readonly<Record<string, string>>; close(): Promise<void> }> {
  await rig.addGateway()
  const [first, ...others] = rig.gateways
  if (!first) throw new Error('the rig has no gateway')
  const edge = rig.address()
  const ports = [first.urls.control, first.urls.barrier, first.urls.admin].flatMap(url =>
    url ? [Number(new URL(url).port)] : []
  )
  const balancer = await startBalancer(
    edge,
    ports,
    others.map(({ host }) => host)
  )
  const list = [
    { name: first.name, host: first.host },
    { name: 'edge', host: edge }
  ]
  return { settings: { APISIX_GATEWAYS_STATIC: JSON.stringify(list) }, close: () => balancer.close() }
}
