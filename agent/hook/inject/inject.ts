import { annotationReader, PREFIX } from '../../rules/drain/annotations.ts'
import { annotationsOf } from '../../kubernetes/facts/pod-fact.ts'
import { fieldsOf, listOf, numberOf, textOf, type Fields } from '../../base/read.ts'
import { commandFor } from './command.ts'
import type { InjectSettings } from './settings.ts'

/** The annotation that names the containers that get a hook (`web, proxy`). Without it, all but sidecars get one. */
const CONTAINERS = `${PREFIX}inject-containers`
/** The most containers, init containers included, of a pod that gets hooks. It bounds the patch. */
const MOST_CONTAINERS = 250

interface Operation {
  readonly op: 'add'
  readonly path: string
  readonly value: unknown
}

interface Target {
  readonly path: string
  readonly container: Fields
  /** The plain sleep of its preStop, in s; 0 if it has none. */
  readonly sleep: number
}

interface Injection {
  readonly operations: readonly Operation[]
  /** Why a pod beyond the limits gets no hook, for whoever creates it. */
  readonly warning?: string
}

const NOTHING: Injection = { operations: [] }

/** Kubernetes' default. The API server writes it into the pod before admission. */
const DEFAULT_GRACE_S = 30
/** What the grace has to have beyond a replaced sleep, in s: `drain.reserve`, so that the agent can wait for the end of that sleep. */
const RESERVE_S = 7
/** A preStop that only sleeps: its words, joined by spaces. */
const PLAIN_SLEEP = /^(?:[a-z/]*\/)?(?:(?:ba|da|a)?sh -c (?:[a-z/]*\/)?)?sleep ([1-9][0-9]{0,3})s?$/

/**
 * The patch that adds the hook to every container of a new pod that has no preStop, or a plain sleep: each gets SIGTERM after its own hook
 * only, and an app must not lose its proxies before its requests. The patch is empty if there is nothing to add, so a second run changes
 * nothing. The rules are exactly those of the chart's injection-policy.yaml.
 */
export function inject(pod: unknown, settings: InjectSettings): Injection {
  const spec = fieldsOf(fieldsOf(pod)['spec'])
  const grace = numberOf(spec['terminationGracePeriodSeconds']) ?? DEFAULT_GRACE_S
  if (grace < 2 || isForWindows(spec)) return NOTHING
  const { read, problems } = annotationReader(
    annotationsOf(fieldsOf(fieldsOf(pod)['metadata'])['annotations'])
  )
  const named = read(CONTAINERS, text => new Set(text.split(',').map(name => name.trim())), 'a list of names')
  const count = listOf(spec['containers']).length + listOf(spec['initContainers']).length
  const problem = count > MOST_CONTAINERS ? `it has more than ${MOST_CONTAINERS} containers` : problems[0]
  if (problem !== undefined)
    return { ...NOTHING, warning: `apisix-drain adds no hook to this pod: ${problem}` }
  const targets = chosen(spec, named).filter(
    ({ container, sleep }) =>
      !has(fieldsOf(container['lifecycle']), 'preStop') || (sleep > 0 && sleep + RESERVE_S <= grace)
  )
  if (targets.length === 0) return NOTHING

  const mounts = settings.volumes.map(({ mount }) => mount)
  const volumes = settings.volumes.map(({ volume }) => volume)
  const operations = [
    ...targets.flatMap(({ path, container, sleep }) => [
      ...missing(container, path, 'lifecycle', {}),
      add(`${path}/lifecycle/preStop`, {
        exec: { command: commandFor(settings, grace, { container: nameOf(container), sleep }) }
      }),
      ...appended(container, path, 'volumeMounts', mounts, 'mountPath'),
      ...appended(container, path, 'env', WHO_ASKS, 'name')
    ]),
    ...appended(spec, '/spec', 'volumes', volumes, 'name'),
    ...(settings.initContainer
      ? appended(spec, '/spec', 'initContainers', [settings.initContainer], 'name')
      : [])
  ]
  return { operations }
}

/**
 * The answer to an AdmissionReview: always allowed, with a patch if the pod gets the hook, and a warning, which `kubectl` prints, if it is
 * beyond the limits. `undefined` if `asked` is not the review of a pod.
 */
export function review(asked: unknown, settings: InjectSettings) {
  const request = fieldsOf(fieldsOf(asked)['request'])
  const uid = textOf(request['uid'])
  if (uid === undefined || fieldsOf(request['kind'])['kind'] !== 'Pod') return undefined
  const { operations, warning } = inject(request['object'], settings)
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64')
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: true,
      ...(operations.length > 0 && { patchType: 'JSONPatch', patch }),
      ...(warning !== undefined && { warnings: [warning] })
    }
  }
}

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
/** The variables with which the hook names its pod, because an address alone does not identify the pod (`identify.ts`). */
const WHO_ASKS = [
  field('POD_NAME', 'metadata.name'),
  field('POD_NAMESPACE', 'metadata.namespace'),
  field('POD_UID', 'metadata.uid')
]

const OS = 'kubernetes.io/os'

function isForWindows(spec: Fields): boolean {
  const node = fieldsOf(fieldsOf(spec['affinity'])['nodeAffinity'])
  const terms = listOf(fieldsOf(node['requiredDuringSchedulingIgnoredDuringExecution'])['nodeSelectorTerms'])
  const wants = terms.flatMap(term => listOf(fieldsOf(term)['matchExpressions'])).map(fieldsOf)
  return (
    fieldsOf(spec['os'])['name'] === 'windows' ||
    fieldsOf(spec['nodeSelector'])[OS] === 'windows' ||
    wants.some(
      ({ key, operator, values }) => key === OS && operator === 'In' && listOf(values).includes('windows')
    )
  )
}

/** The named containers; if none are named, all but the sidecars, which end after the others anyway. */
function chosen(spec: Fields, named: ReadonlySet<string> | undefined): readonly Target[] {
  const main = targetsOf(spec, 'containers')
  if (!named) return main
  const sidecars = targetsOf(spec, 'initContainers').filter(
    ({ container }) => container['restartPolicy'] === 'Always'
  )
  return [...main, ...sidecars].filter(({ container }) => named.has(nameOf(container)))
}

const nameOf = (container: Fields): string => textOf(container['name']) ?? ''

const targetsOf = (spec: Fields, list: 'containers' | 'initContainers'): Target[] =>
  listOf(spec[list])
    .map(fieldsOf)
    .map((container, index) => ({ path: `/spec/${list}/${index}`, container, sleep: sleepOf(container) }))

function sleepOf({ lifecycle }: Fields): number {
  const { exec, sleep } = fieldsOf(fieldsOf(lifecycle)['preStop'])
  const [, seconds] = PLAIN_SLEEP.exec(listOf(fieldsOf(exec)['command']).join(' ')) ?? []
  return seconds === undefined ? (numberOf(fieldsOf(sleep)['seconds']) ?? 0) : Number(seconds)
}

const has = (fields: Fields, name: string) => fields[name] !== undefined && fields[name] !== null
const add = (path: string, value: unknown): Operation => ({ op: 'add', path, value })
const missing = (of: Fields, path: string, name: string, value: unknown): Operation[] =>
  has(of, name) ? [] : [add(`${path}/${name}`, value)]

/** The operations that add to a list each item whose `key` the list does not have yet. They create a missing list. */
function appended(
  of: Fields,
  path: string,
  name: string,
  items: readonly Fields[],
  key: string
): Operation[] {
  const had = new Set(listOf(of[name]).map(item => fieldsOf(item)[key]))
  const fresh = items.filter(item => !had.has(item[key]))
  if (fresh.length === 0) return []
  return [...missing(of, path, name, []), ...fresh.map(item => add(`${path}/${name}/-`, item))]
}
