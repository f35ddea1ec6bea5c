import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import type { AdminOptions } from '../gateway/apisix/admin-api.ts'
import type { BarrierOptions } from '../gateway/apisix/barrier-api.ts'
import type { ControlOptions } from '../gateway/apisix/control-api.ts'
import { type LeasePlace, createElector, alone, type Leader } from '../kubernetes/lead/elector.ts'
import type { GatewaySelector, Cluster } from '../kubernetes/facts/cluster.ts'
import type { CredentialSource } from '../kubernetes/transport/credentials.ts'
import type { Log } from '../base/log.ts'

/** Objects per page of a listing: the most that APISIX gives. */
const PAGE_SIZE = 500
/** Bound of one call of the Barrier API, in ms. The wait of a long poll comes on top. */
const BARRIER_TIMEOUT_MS = 1000

/** The options of the client of the Admin API, from the configuration. The doctor uses them too, and those of the other clients. */
export function adminOptions(admin: NonNullable<Config['apisix']['admin']>): AdminOptions {
  const { url, key, ca, timeoutMs } = admin
  return { url, key: () => key.read(), ca: ca && (() => ca.read()), timeoutMs, pageSize: PAGE_SIZE }
}

export function controlOptions(
  { port, timeoutMs }: Config['apisix']['control'],
  clock: Clock
): ControlOptions {
  return { port, timeoutMs, now: () => clock.now() }
}

export function barrierOptions(barrier: NonNullable<Config['apisix']['barrier']>): BarrierOptions {
  const { port, scheme, token, ca, serverName } = barrier
  const read = { token: () => token.read(), ca: ca && (() => ca.read()) }
  return { port, scheme, ...read, serverName, timeoutMs: BARRIER_TIMEOUT_MS }
}

/** Which pods are gateways, from the configuration. */
export function gatewaySelector(source: Config['apisix']['gateways']): GatewaySelector {
  return source.kind === 'static'
    ? { static: source.gateways }
    : { namespace: source.namespace, labelSelector: source.selector }
}

/** The configured kubeconfig, else the pod's own account, else the kubeconfig that kubectl would use. */
export function credentialSource({ kubeconfig, account }: Config['kubernetes']): CredentialSource {
  if (kubeconfig === undefined && existsSync(join(account, 'token'))) {
    return { kind: 'in-cluster', account }
  }
  return { kind: 'kubeconfig', ...(kubeconfig !== undefined && { file: kubeconfig }) }
}

/** The location of the Lease; `undefined` without an election. A dry run does none of the leader's work. */
export function leasePlace({ leader, drain, kubernetes }: Config): LeasePlace | undefined {
  if (drain.dryRun) return undefined
  const [namespace = ownNamespace(kubernetes), name = 'apisix-drain'] = leader.lease?.split('/') ?? []
  return namespace === undefined ? undefined : { namespace, name }
}

/** The namespace of the agent's pod; `undefined` outside of a cluster. */
function ownNamespace(kubernetes: Config['kubernetes']): string | undefined {
  const source = credentialSource(kubernetes)
  const file = source.kind === 'in-cluster' ? join(source.account, 'namespace') : ''
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}

/** Starts the election that the configuration asks for. */
export function electLeader(config: Config, { call }: Pick<Cluster, 'call'>, clock: Clock, log: Log): Leader {
  const place = leasePlace(config)
  if (!place)
    return alone(
      config.drain.dryRun
        ? 'a dry run takes part in no election'
        : 'there is no election: outside of a cluster leader.lease must name one'
    )
  // A restarted container has the same pod name, and must not treat the old Lease as its own.
  const identity = `${hostname()}_${randomUUID().slice(0, 8)}`
  return createElector({ place, identity, call, clock, log })
}
