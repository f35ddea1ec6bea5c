import { createHash } from 'node:crypto'
import type {
  V1Container,
  V1ContainerPort,
  V1ContainerState,
  V1ContainerStateRunning,
  V1ContainerStatus,
  V1Lifecycle,
  V1ObjectMeta,
  V1OwnerReference,
  V1Pod,
  V1PodIP,
  V1PodSpec,
  V1PodStatus,
  V1Probe
} from '@kubernetes/client-node'
import { LONGEST_VALUE, PREFIX } from '../../rules/drain/annotations.ts'
import type { PodFact, PodPhase, PodUid } from '../../rules/drain/facts.ts'
import { identityOf } from '../transport/objects.ts'
import { MOST_PORTS } from '../../rules/plan/holder.ts'
import {
  conditionIsTrue,
  fieldsOf,
  listOf,
  numberOf,
  portOf,
  textOf,
  timeOf,
  type Fields,
  type FieldsOf
} from '../../base/read.ts'

/** Kubernetes' own default of `terminationGracePeriodSeconds`. */
const DEFAULT_GRACE_MS = 30_000

const PHASES: ReadonlySet<string> = new Set(['Pending', 'Running', 'Succeeded', 'Failed'])

/** Shared by nearly all pods, because they have no annotation of the agent. */
const NO_ANNOTATIONS: Readonly<Record<string, string>> = Object.freeze({})
const NO_IPS: readonly string[] = Object.freeze([])

/**
 * The fields of the API server's pod that a drain can depend on. It never throws, and a missing field has a default. `undefined` only
 * if the object cannot be identified, or if its deletion mark is unreadable: the fact would look like a pod that stays.
 */
export function toPodFact(object: unknown): PodFact | undefined {
  const { metadata, spec: specOf, status: statusOf } = fieldsOf<V1Pod>(object)
  const meta = fieldsOf<V1ObjectMeta>(metadata)
  const spec = fieldsOf<V1PodSpec>(specOf)
  const status = fieldsOf<V1PodStatus>(statusOf)
  const identity = identityOf(object)
  if (!identity) return undefined
  const { uid, name, namespace } = identity
  const deletionAt = timeOf(meta.deletionTimestamp)
  if (deletionAt === undefined && textOf(meta.deletionTimestamp) !== undefined) return undefined
  const { runs, startedAt } = containersOf(status)
  const graceMs = toMillis(numberOf(spec.terminationGracePeriodSeconds)) ?? DEFAULT_GRACE_MS
  const labels = fieldsOf(meta.labels)
  const controller = controllerOf(meta.ownerReferences)
  // Listed one by one: spread properties are stored outside of the object, and there are tens of thousands of facts.
  return {
    uid: uid as PodUid,
    namespace: intern.text(namespace),
    name,
    phase: phaseOf(status.phase),
    ready: conditionIsTrue(status.conditions, 'Ready'),
    ips: ipsOf(status),
    hostNetwork: spec.hostNetwork === true,
    containerPorts: portsOf(runningIn(spec), 'containerPort'),
    containers: intern.value(
      runningIn(spec).map(one => ({ name: textOf(one.name) ?? '', ports: portsOf([one], 'containerPort') }))
    ),
    runs,
    hostPorts: portsOf(runningIn(spec), 'hostPort'),
    hostIp: internedOf(status.hostIP),
    deletionAt,
    deletionGraceMs: toMillis(numberOf(meta.deletionGracePeriodSeconds)),
    graceMs,
    longestGraceMs: Math.max(graceMs, ...runningIn(spec).flatMap(gracesOf)),
    startedAt,
    owner: controller && intern.text(`${controller.kind}/${controller.name}`),
    workload: controller && intern.text(workloadOf(controller, labels)),
    host: internedOf(spec.nodeName),
    hook: hookOf(spec),
    annotations: annotationsOf(meta.annotations),
    labelKey: intern.text(labelKeyOf(labels, controller?.name))
  }
}

/** `status.podIPs`, or `status.podIP` if the server sends only that. */
export function ipsOf(status: FieldsOf<V1PodStatus>): readonly string[] {
  const ips: string[] = []
  for (const entry of listOf(status.podIPs)) {
    const ip = textOf(fieldsOf<V1PodIP>(entry).ip)
    if (ip !== undefined) ips.push(ip)
  }
  // A copy has exactly the space that it needs; an array that grew by `push` has space for sixteen more.
  if (ips.length > 0) return ips.slice()
  const only = textOf(status.podIP)
  return only === undefined ? NO_IPS : [only]
}

function phaseOf(phase: unknown): PodPhase {
  return typeof phase === 'string' && PHASES.has(phase) ? (phase as PodPhase) : 'Unknown'
}

const internedOf = (value: unknown): string | undefined => {
  const text = textOf(value)
  return text === undefined ? undefined : intern.text(text)
}

/** The containers, and the init containers too, because some of them are sidecars. */
const runningIn = (spec: FieldsOf<V1PodSpec>): readonly FieldsOf<V1Container>[] =>
  [...listOf(spec.containers), ...listOf(spec.initContainers)].map(one => fieldsOf<V1Container>(one))

function portsOf(
  containers: readonly FieldsOf<V1Container>[],
  which: 'containerPort' | 'hostPort'
): readonly number[] {
  const ports = new Set<number>()
  for (const entry of containers.flatMap(({ ports }) => listOf(ports))) {
    const port = portOf(fieldsOf<V1ContainerPort>(entry)[which])
    if (port !== undefined && ports.size <= MOST_PORTS) ports.add(port)
  }
  return intern.value([...ports])
}

/** The graces of the probes that restart a container. */
const gracesOf = ({ livenessProbe, startupProbe }: FieldsOf<V1Container>): number[] =>
  [livenessProbe, startupProbe].flatMap(
    probe => toMillis(numberOf(fieldsOf<V1Probe>(probe).terminationGracePeriodSeconds)) ?? []
  )

/** As much of a containerID as distinguishes two runs. */
const RUN_DIGITS = 12

/** The runs of the containers, and the latest start. Both change when a container restarts. */
function containersOf(status: FieldsOf<V1PodStatus>): { runs: string; startedAt: number | undefined } {
  const runs: string[] = []
  let startedAt: number | undefined
  for (const entry of [...listOf(status.containerStatuses), ...listOf(status.initContainerStatuses)]) {
    const { name, containerID, state } = fieldsOf<V1ContainerStatus>(entry)
    const id = textOf(containerID)
    if (id) runs.push(`${textOf(name)}=${id.slice(-RUN_DIGITS)}`)
    const { running } = fieldsOf<V1ContainerState>(state)
    const started = timeOf(fieldsOf<V1ContainerStateRunning>(running).startedAt)
    if (started !== undefined && (startedAt === undefined || started > startedAt)) startedAt = started
  }
  return { runs: runs.join(' '), startedAt }
}

/** All that is kept of the preStop hooks; `doctor` reads whole pods instead. Init containers end last. */
function hookOf(spec: FieldsOf<V1PodSpec>): PodFact['hook'] {
  let [found, others]: [PodFact['hook'], boolean] = [undefined, false]
  for (const kind of ['containers', 'initContainers'] as const) {
    for (const container of listOf(spec[kind])) {
      const { preStop } = fieldsOf<V1Lifecycle>(fieldsOf<V1Container>(container).lifecycle)
      const text = JSON.stringify(preStop ?? '')
      if (text.includes('apisix-drain-hook') || (text.includes('/v1/prestop') && text.includes('||')))
        found = found === 'bare' ? found : 'safe'
      else if (text.includes('/v1/prestop')) found = 'bare'
      else if (preStop === undefined && kind === 'containers') others = true
    }
  }
  return found === 'safe' && others ? 'part' : found
}

interface Controller {
  /** Empty: the core group. */
  readonly group: string
  readonly kind: string
  readonly name: string
}

export function controllerOf(references: unknown): Controller | undefined {
  for (const reference of listOf(references)) {
    const { apiVersion, controller, kind, name } = fieldsOf<V1OwnerReference>(reference)
    if (controller === true && typeof kind === 'string' && typeof name === 'string') {
      const version = textOf(apiVersion) ?? ''
      return { group: version.slice(0, Math.max(version.indexOf('/'), 0)), kind, name }
    }
  }
  return undefined
}

/**
 * The controller, the same for all generations of a Deployment, Rollout or DeploymentConfig. The labels of the pod confirm the suffix of a
 * generation, because names alone do not distinguish `web-canary` from a generation of `web`.
 */
function workloadOf({ group, kind, name }: Controller, labels: Fields): string {
  const known = `${kind}${group && `.${group}`}/`
  for (const key of kind === 'ReplicaSet' ? TEMPLATE_HASHES : []) {
    const hash = textOf(labels[key])
    if (hash !== undefined && name.endsWith(`-${hash}`))
      return `${known}${name.slice(0, name.length - hash.length)}<${key}>`
  }
  const config = labels['deploymentconfig']
  const isOfConfig = kind === 'ReplicationController' && labels[OF_CONTROLLER] === name
  return isOfConfig && typeof config === 'string' ? `${known}<deploymentconfig ${config}>` : known + name
}

/** The agent's own annotations. A value that is too long is cut, but stays long enough to be refused. */
export function annotationsOf(annotations: unknown): Readonly<Record<string, string>> {
  let ours: Record<string, string> | undefined
  for (const [key, value] of Object.entries(fieldsOf(annotations))) {
    if (key.startsWith(PREFIX) && typeof value === 'string')
      (ours ??= {})[key] = value.slice(0, LONGEST_VALUE + 1)
  }
  return ours ?? NO_ANNOTATIONS
}

/** Of a pod of a Deployment, and of a Rollout (Argo): the suffix of its ReplicaSet's name. */
const TEMPLATE_HASHES = ['pod-template-hash', 'rollouts-pod-template-hash'] as const
/** Of a pod of a DeploymentConfig (OpenShift): the name of its ReplicationController. */
const OF_CONTROLLER = 'deployment'

/** Labels that controllers write into their pods: a Deployment, a DaemonSet, a StatefulSet, a Rollout (Argo), a CloneSet (OpenKruise). */
const GENERATED: ReadonlySet<string> = new Set([
  ...TEMPLATE_HASHES,
  'controller-revision-hash',
  'pod-template-generation',
  'statefulset.kubernetes.io/pod-name',
  'apps.kubernetes.io/pod-index',
  'apps.kruise.io/cloneset-instance-id',
  'apps.kruise.io/specified-delete',
  'lifecycle.apps.kruise.io/state'
])

const labelKeyOf = (labels: Fields, controller: string | undefined): string => {
  const key = Object.entries(labels)
    .flatMap(([key, value]) =>
      GENERATED.has(key) || (key === OF_CONTROLLER && value === controller) ? [] : [`${key}=${String(value)}`]
    )
    .sort()
    .join()
  return key.length > LONGEST_VALUE ? createHash('sha256').update(key).digest('hex') : key
}

const toMillis = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1000)

/** Enough for every namespace, ReplicaSet and port list of a large cluster. */
const MOST = 20_000

/**
 * Returns the same object for equal values. JSON.parse makes a new string for every "kube-system". With 10,000 pods, such copies
 * would take most of the facts' memory. When it is full it forgets everything, so that names of past ReplicaSets do not pile up.
 */
export function createIntern(most = MOST) {
  const texts = new Map<string, string>()
  const values = new Map<string, unknown>()
  return {
    text(value: string): string {
      const known = texts.get(value)
      if (known !== undefined) return known
      if (texts.size >= most) texts.clear()
      texts.set(value, value)
      return value
    },
    value<T extends object>(value: T): T {
      const key = JSON.stringify(value)
      const known = values.get(key)
      if (known) return known as T
      if (values.size >= most) values.clear()
      values.set(key, value)
      return value
    }
  }
}

export const intern = createIntern()

/**
 * Several values under one key. A key with one value, by far the most common case, costs only a map entry. So an index over 10,000 pods
 * does not hold 10,000 arrays.
 */
export function createMultiMap<K, V extends object>() {
  const values = new Map<K, V | Set<V>>()
  return {
    get(key: K): readonly V[] {
      const held = values.get(key)
      return held === undefined ? [] : held instanceof Set ? [...held] : [held]
    },
    add(key: K, value: V): void {
      const held = values.get(key)
      if (held instanceof Set) held.add(value)
      else values.set(key, held === undefined ? value : new Set([held, value]))
    },
    /** Removes this very object. */
    remove(key: K, value: V): void {
      const held = values.get(key)
      if (held === value) values.delete(key)
      if (!(held instanceof Set) || !held.delete(value) || held.size > 1) return
      for (const only of held) values.set(key, only)
    }
  }
}
