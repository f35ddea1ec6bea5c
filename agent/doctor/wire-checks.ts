import { clean } from '../base/read.ts'
import { systemClock, type Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { createAdminApi, type AdminApi } from '../gateway/apisix/admin-api.ts'
import { createBarrierClient, type BarrierClient } from '../gateway/apisix/barrier-api.ts'
import { createControlReader, type ReadGateway } from '../gateway/apisix/control-api.ts'
import { createListSource, NO_LISTS } from '../gateway/inventory/lists.ts'
import { createOnlyApisix } from '../hook/prestop.ts'
import { readInjectSettings } from '../hook/inject/inject.ts'
import { createConnection, inTime, orAborted, type Connection } from '../kubernetes/transport/connection.ts'
import { loadCredentials } from '../kubernetes/transport/credentials.ts'
import { list, podsIn, servicesIn, type Collection } from '../kubernetes/reflect/collection.ts'
import { adminOptions, barrierOptions, controlOptions, credentialSource, leasePlace } from '../start/wire.ts'
import { checkGateways, checkOthers, checkAdmin } from './checks/check-gateways.ts'
import {
  fail,
  wordsOf,
  createClusterLists,
  type Check,
  type Finding,
  type ListObjects
} from './checks/cluster-lists.ts'
import { checkInjection, checkPods } from './checks/check-pods.ts'
import { checkKubernetes, checkNamespaces, checkRbac } from './rights/check-rbac.ts'
import { gatewayPodReader, staticGateway } from '../kubernetes/facts/gateway-store.ts'
import type { GatewayFact } from '../rules/drain/facts.ts'

/** The agent's own clients, so that the doctor takes the same paths as the agent. */
export interface DoctorClients {
  readonly connection: Pick<Connection, 'request'>
  readonly admin: Pick<AdminApi, 'standalone' | 'list' | 'pageSize'> | undefined
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
  const scopes = kubernetes.namespaces.length > 0 ? kubernetes.namespaces : [undefined]
  const each =
    (collection: (namespace: string | undefined) => Collection): ListObjects =>
    async (onItem, signal) => {
      for (const namespace of scopes)
        await list(connection, collection(namespace), undefined, { onBegin() {}, onItem }, signal)
    }
  const survey = createClusterLists({
    clock,
    isOnlyApisix: createOnlyApisix(ask, clock),
    lists: { pods: each(podsIn), services: each(servicesIn) },
    holders: signal => (admin ? createListSource(admin) : NO_LISTS).open(signal)
  })
  const now = () => clock.now()
  const needMs = apisix.barrier ? 0 : drain.settleMs
  const byHand = apisix.gateways.kind === 'static'
  const steps = [
    { name: 'kubernetes', check: checkKubernetes(ask) },
    { name: 'rbac', after: ['kubernetes'], check: checkRbac(ask, kubernetes.namespaces, leasePlace(config)) },
    kubernetes.namespaces.length > 0 && {
      name: 'namespaces',
      after: ['kubernetes', 'rbac'],
      check: checkNamespaces(ask, kubernetes.namespaces)
    },
    inject && {
      name: 'injection',
      check: checkInjection(() => readInjectSettings(inject.file), now)
    },
    admin && { name: 'admin-api', check: checkAdmin(admin) },
    { name: 'gateways', after: byHand ? [] : ['kubernetes'], check: checkGateways(gatewayCalls, config) },
    {
      name: 'others',
      after: ['rbac', 'gateways'],
      check: checkOthers(survey, signal => gatewayCalls.list(signal))
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
  const admin = config.apisix.admin && createAdminApi(adminOptions(config.apisix.admin))
  const barrier = config.apisix.barrier && createBarrierClient(barrierOptions(config.apisix.barrier))
  try {
    const readGateway = createControlReader(controlOptions(config.apisix.control, clock))
    const checks = doctorChecks(config, { connection, admin, readGateway, barrier, clock })
    const diagnosis = await examine(checks, clock)
    process.stdout.write(clean(json ? `${JSON.stringify(diagnosis)}\n` : formatDiagnosis(diagnosis)))
    return diagnosis.healthy ? 0 : 1
  } finally {
    admin?.close()
    barrier?.close()
    await connection.close()
  }
}

interface Diagnosis {
  /** No check failed. Warnings are allowed. */
  readonly healthy: boolean
  readonly findings: readonly Finding[]
  /** Checks that were not made, with the failed check that explains them. */
  readonly skipped: readonly { readonly name: string; readonly because: string }[]
}

/** A check, and the names of the checks that must succeed first. */
export interface Step {
  readonly name: string
  readonly check: Check
  readonly after?: readonly string[]
}

/** A check that takes longer than this has failed, in ms. */
const CHECK_MS = 30_000

/**
 * Runs all checks in parallel, each after the checks that it needs. If a check fails, the checks that need it are skipped, so the
 * failure is reported once. The findings come in the order of the checks. Never rejects.
 */
export async function examine(steps: readonly Step[], clock: Clock): Promise<Diagnosis> {
  const results = new Map<Step, Promise<Result>>()
  const take = async (step: Step): Promise<Result> => {
    for (const need of steps.filter(({ name }) => step.after?.includes(name))) {
      const { findings = [], skipped } = (await results.get(need)) ?? {}
      const failed =
        skipped?.because ?? (findings.some(({ level }) => level === 'fail') ? need.name : undefined)
      if (failed !== undefined) return { skipped: { name: step.name, because: failed } }
    }
    return { findings: await bounded(step.name, step.check, clock) }
  }
  for (const step of steps) results.set(step, take(step))
  const all = await Promise.all(results.values())
  const findings = all.flatMap(result => result.findings ?? [])
  const skipped = all.flatMap(result => result.skipped ?? [])
  return { healthy: findings.every(finding => finding.level !== 'fail'), findings, skipped }
}

interface Result {
  readonly findings?: readonly Finding[]
  readonly skipped?: Diagnosis['skipped'][number]
}

async function bounded(name: string, check: Check, clock: Clock): Promise<readonly Finding[]> {
  let late: AbortSignal | undefined
  try {
    return await inTime({ clock, ms: CHECK_MS }, signal => orAborted(check((late = signal)), signal))
  } catch (err) {
    return late?.aborted
      ? [
          fail(
            name,
            `no answer within ${CHECK_MS / 1000} s`,
            'look at the network between the agent and what is checked'
          )
        ]
      : [fail(name, `cannot be checked: ${wordsOf(err)}`, 'correct what the message names, then try again')]
  }
}

const MARKS = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const

/** Plain lines for a terminal: no colours, no fixed width. */
export function formatDiagnosis({ healthy, findings, skipped }: Diagnosis): string {
  const lines = findings.flatMap(({ name, level, what, change }) => [
    `${MARKS[level]}  ${name}: ${what}`,
    ...(change === '' ? [] : [`        -> ${change}`])
  ])
  const left = Map.groupBy(skipped, ({ because }) => because)
  for (const [because, checks] of left) {
    const names = [...new Set(checks.map(({ name }) => name))].join(', ')
    lines.push(`skip  ${names}: not checked, because ${because} failed`)
  }
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  const verdict = healthy ? 'the agent can work here' : 'the agent cannot work here as configured'
  const warnings = `${count('warn')} ${count('warn') === 1 ? 'warning' : 'warnings'}`
  return `${lines.join('\n')}\n\n${count('ok')} ok, ${warnings}, ${count('fail')} failed: ${verdict}\n`
}

/** Accepts gateways at loopback addresses too (`local`), because operators run the doctor on the machine of a local cluster. */
const readGatewayPod = gatewayPodReader(true)

/** The gateways that the configuration selects. @throws Error if the API server cannot list them */
async function listGateways(
  { apisix: { gateways: source } }: Config,
  connection: Pick<Connection, 'request'>,
  signal: AbortSignal
): Promise<GatewayFact[]> {
  if (source.kind === 'static') return source.gateways.map(staticGateway)
  const gateways = new Map<string, GatewayFact>()
  const onItem = (pod: unknown) => {
    const found = readGatewayPod(pod)
    if (found && !found.ended) gateways.set(found.uid, found.gateway)
  }
  const handlers = { onBegin: () => gateways.clear(), onItem }
  await list(connection, podsIn(source.namespace, source.selector), undefined, handlers, signal)
  return [...gateways.values()]
}
