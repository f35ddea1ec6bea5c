import { clean } from '../base/read.ts'
import { systemClock, type Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { createAdminApi, type AdminApi } from '../gateway/apisix/admin-api.ts'
import { createBarrierClient, type BarrierClient } from '../gateway/apisix/barrier-api.ts'
import { createControlReader, type ReadGateway } from '../gateway/apisix/control-api.ts'
import { detectMode } from '../gateway/inventory/mode.ts'
import { createOnlyApisix } from '../hook/only-apisix.ts'
import { readInjectSettings } from '../hook/inject/settings.ts'
import { createConnection, type Connection } from '../kubernetes/transport/connection.ts'
import { loadCredentials } from '../kubernetes/transport/credentials.ts'
import { podsIn, servicesIn, slicesIn, type Collection } from '../kubernetes/reflect/collection.ts'
import { adminOptions, barrierOptions, controlOptions, credentialSource, leasePlace } from '../start/wire.ts'
import { checkAdmin } from './checks/check-admin.ts'
import { examine, formatDiagnosis, type Step } from './doctor.ts'
import { listGateways, pagesOf } from './reads.ts'
import { checkGateways, checkOthers } from './checks/check-gateways.ts'
import { checkHidden, checkSync } from './checks/check-holders.ts'
import { checkInjection } from './checks/check-injection.ts'
import { createClusterLists } from './checks/cluster-lists.ts'
import { everyWorkerCoversL4 } from '../round/gather/hidden-places.ts'
import { createLists } from '../gateway/inventory/lists.ts'
import { checkPods } from './checks/check-pods.ts'
import { checkKubernetes, checkNamespaces, checkRbac } from './rights/check-rbac.ts'

/** The agent's own clients, so that the doctor takes the same paths as the agent. */
export interface DoctorClients {
  readonly connection: Pick<Connection, 'request'>
  readonly admin: Pick<AdminApi, 'standalone' | 'list' | 'pageSize'>
  readonly readGateway: ReadGateway
  readonly barrier: Pick<BarrierClient, 'at'> | undefined
  readonly clock: Clock
}

/** All checks, in the order in which a person would make them: the first failure often explains later failures. */
export function doctorChecks(config: Config, clients: DoctorClients): readonly Step[] {
  const { connection, admin, readGateway, barrier, clock } = clients
  const { kubernetes, apisix, drain, inject } = config
  const ask = (method: string, path: string, body: unknown, signal: AbortSignal) =>
    connection.request(method, path, body, signal)
  const gatewayCalls = {
    list: (signal: AbortSignal) => listGateways(config, connection, signal),
    readControl: (host: string, signal: AbortSignal) => readGateway(host, signal),
    readBarrier: (host: string, signal: AbortSignal) =>
      barrier ? barrier.at(host).state(signal) : Promise.reject(new Error('there is no barrier client'))
  }
  const each = (collection: (namespace: string | undefined) => Collection) => (signal: AbortSignal) =>
    pagesOf(kubernetes.namespaces, collection, connection, signal)
  const survey = createClusterLists({
    clock,
    isOnlyApisix: createOnlyApisix(ask, clock),
    lists: { pods: each(podsIn), slices: each(slicesIn), services: each(servicesIn) },
    async holders(signal) {
      const mode = (await admin.standalone(signal)) ? 'standalone' : 'etcd'
      return createLists(admin, { current: () => ({ mode }) })
    }
  })
  /** Whether every gateway answers that it seals and counts L4 sessions too. */
  const coversL4 = async (signal: AbortSignal) => {
    if (!barrier) return false
    const gateways = await gatewayCalls.list(signal)
    const states = gateways.map(({ ip }) =>
      barrier
        .at(ip)
        .state(signal)
        .catch(() => undefined)
    )
    return everyWorkerCoversL4(await Promise.all(states))
  }
  const now = () => clock.now()
  const needMs = apisix.barrier ? 0 : drain.settleMs
  const byHand = apisix.gateways.kind === 'static'
  const steps = [
    { name: 'kubernetes', check: checkKubernetes(ask) },
    { name: 'rbac', after: ['kubernetes'], check: checkRbac(ask, kubernetes.namespaces, leasePlace(config)) },
    kubernetes.namespaces.length > 0 && {
      name: 'namespaces',
      after: ['kubernetes', 'rbac'],
      check: checkNamespaces(ask, survey, kubernetes.namespaces)
    },
    inject && {
      name: 'injection',
      check: checkInjection(() => readInjectSettings(inject.file), now)
    },
    { name: 'admin-api', check: checkAdmin(signal => detectMode(admin, signal)) },
    { name: 'gateways', after: byHand ? [] : ['kubernetes'], check: checkGateways(gatewayCalls, config) },
    {
      name: 'others',
      after: ['rbac', 'gateways'],
      check: checkOthers(survey, signal => gatewayCalls.list(signal))
    },
    { name: 'hidden', after: ['kubernetes', 'rbac', 'admin-api'], check: checkHidden(survey, coversL4) },
    config.sync.allow.length > 0 && {
      name: 'sync',
      after: ['kubernetes', 'rbac'],
      check: checkSync(survey, config.sync.allow)
    },
    {
      name: 'pods',
      after: ['kubernetes', 'rbac'],
      check: checkPods(survey, { reserveMs: drain.reserveMs, needMs }, kubernetes.namespaces)
    }
  ]
  return steps.filter(step => step !== undefined && step !== false)
}

/**
 * `apisix-drain doctor`: runs every check with the agent's own clients and prints the findings. Returns the exit code:
 * 0 if no check failed.
 *
 * @throws Error when the Kubernetes credentials cannot be read
 */
export async function diagnose(config: Config, json: boolean): Promise<number> {
  const clock = systemClock
  const connection = createConnection(loadCredentials(credentialSource(config.kubernetes), clock), clock)
  const admin = createAdminApi(adminOptions(config.apisix.admin))
  const barrier = config.apisix.barrier && createBarrierClient(barrierOptions(config.apisix.barrier))
  try {
    const readGateway = createControlReader(controlOptions(config.apisix.control, clock))
    const checks = doctorChecks(config, { connection, admin, readGateway, barrier, clock })
    const diagnosis = await examine(checks, clock)
    process.stdout.write(clean(json ? `${JSON.stringify(diagnosis)}\n` : formatDiagnosis(diagnosis)))
    return diagnosis.healthy ? 0 : 1
  } finally {
    admin.close()
    barrier?.close()
    await connection.close()
  }
}
