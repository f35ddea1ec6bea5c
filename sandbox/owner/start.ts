import type { Gateways } from '../gateways/start.ts'
import { etcdTarget, standaloneTarget, type AdcTarget } from './adc-target.ts'
import { startAdc } from './adc.ts'
import { startDiscovery } from './discovery.ts'
import { startOwner, upstreamId, type OwnedService, type Owner } from './owner.ts'
import { putObject } from './put.ts'
import { now } from '../now.ts'
import { readyNodes, type SliceSource } from './slices.ts'

/** The ways in which APISIX is run. Each has another writer of its upstreams. */
export const MODES = ['etcd-1.8', 'etcd-2.x', 'standalone', 'discovery', 'sync'] as const
export type SandboxMode = (typeof MODES)[number]

export interface OwnerContext {
  readonly slices: SliceSource
  readonly gateways: Gateways
  readonly service: OwnedService
  /** The name of its port. */
  readonly port: string
  readonly lag: { readonly minMs: number; readonly maxMs: number }
  readonly seed: number
}

/** The upstream that the agent syncs. */
export const SYNCED = 'web'
const ROUTE = { name: 'web', uri: '/*' }
/** Shorter than the chart's minute: a rolling update of the sandbox should see some syncs without an event. */
const PERIOD_MS = 5000

const STARTS: Readonly<Record<SandboxMode, (context: OwnerContext) => Promise<Owner>>> = {
  async 'etcd-1.8'({ slices, gateways: { admin }, service, lag, seed }) {
    const owner = startOwner({ slices, admin, services: [service], lag, seed })
    await written(owner)
    await putObject(admin, 'routes/web', { ...ROUTE, upstream_id: upstreamId(service) })
    return owner
  },
  async 'etcd-2.x'({ gateways, ...context }) {
    return startSyncs(context, etcdTarget(gateways.admin))
  },
  async standalone({ gateways, ...context }) {
    const { key } = gateways.admin
    const servers = gateways.gateways.map(({ admin = '' }) => ({ url: admin, key }))
    return startSyncs(
      context,
      standaloneTarget(() => servers)
    )
  },
  async discovery({ slices, gateways, service, port, lag, seed }) {
    const owner = startDiscovery({
      slices,
      services: [service],
      gateways: gateways.gateways.map(({ name }) => name),
      tell: gateways.discovered,
      lag,
      seed
    })
    await putObject(gateways.admin, 'upstreams/web', {
      type: 'roundrobin',
      discovery_type: 'kubernetes',
      service_name: `${service.namespace}/${service.name}:${port}`
    })
    await putObject(gateways.admin, 'routes/web', { ...ROUTE, upstream_id: 'web' })
    return owner
  },
  /** The upstream is written once, as by hand. Then the agent keeps it equal to the Service's endpoints. */
  async sync({ slices, gateways: { admin }, service }) {
    const name = `${service.namespace}/${service.name}`
    const nodes = readyNodes(slices.list(), name, 1)
    const eventAt = now()
    await putObject(admin, `upstreams/${SYNCED}`, { name: SYNCED, type: 'roundrobin', nodes })
    await putObject(admin, 'routes/web', { ...ROUTE, upstream_id: SYNCED })
    return {
      writes: [{ service: name, eventAt, acceptedAt: now(), nodes }],
      close: () => Promise.resolve()
    }
  }
}

/** Starts the writer of upstreams in this mode, and makes sure that a route to the Service exists. */
export const startMode = (mode: SandboxMode, context: OwnerContext): Promise<Owner> => STARTS[mode](context)

const startSyncs = (
  { slices, service, lag, seed }: Omit<OwnerContext, 'gateways'>,
  target: AdcTarget
): Owner => startAdc({ slices, services: [service], target, syncMs: lag, periodMs: PERIOD_MS, seed })

/** Waits for the first write of the owner, because the route needs the upstream. */
async function written(owner: Owner): Promise<void> {
  while (!owner.writes.some(({ acceptedAt }) => acceptedAt !== undefined))
    await new Promise(resolve => setTimeout(resolve, 10))
}
