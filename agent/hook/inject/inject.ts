import { PREFIX } from '../../rules/drain/annotations.ts'
import { fieldsOf, listOf, numberOf, textOf, type Fields } from '../../base/read.ts'
import { commandFor } from './command.ts'
import type { InjectSettings } from './settings.ts'

/** The annotation that names the containers that get a hook (`web, proxy`). Without it, their ports decide. */
const CONTAINERS = `${PREFIX}inject-containers`

/** The part of RFC 6902 that is needed here. */
interface Operation {
  readonly op: 'add'
  readonly path: string
  readonly value: unknown
}

interface Target {
  readonly path: string
  readonly container: Fields
  /** True for an item of `containers`, false for a sidecar (an item of `initContainers`). */
  readonly main: boolean
}

/** Kubernetes' default. The API server writes it into the pod before admission. */
const DEFAULT_GRACE_S = 30

/**
 * The patch that adds the hook to every serving container of a new pod that has no preStop. The patch is empty if there is nothing to
 * add, so a second run changes nothing. The rules are exactly those of the chart's injection-policy.yaml.
 */
export function inject(pod: unknown, settings: InjectSettings): readonly Operation[] {
  const spec = fieldsOf(fieldsOf(pod)['spec'])
  const grace = numberOf(spec['terminationGracePeriodSeconds']) ?? DEFAULT_GRACE_S
  if (grace < 2 || fieldsOf(spec['os'])['name'] === 'windows') return []
  const targets = serving(pod, spec).filter(
    ({ container }) => !has(fieldsOf(container['lifecycle']), 'preStop')
  )
  if (targets.length === 0) return []

  const preStop = { exec: { command: commandFor(settings, grace) } }
  return [
    ...targets.flatMap(({ path, container }) => [
      ...missing(container, path, 'lifecycle', {}),
      add(`${path}/lifecycle/preStop`, preStop),
      ...appended(
        container,
        path,
        'volumeMounts',
        settings.volumes.map(({ mount }) => mount),
        'mountPath'
      ),
      ...appended(container, path, 'env', WHO_ASKS, 'name')
    ]),
    ...appended(
      spec,
      '/spec',
      'volumes',
      settings.volumes.map(({ volume }) => volume),
      'name'
    ),
    ...(settings.initContainer
      ? appended(spec, '/spec', 'initContainers', [settings.initContainer], 'name')
      : [])
  ]
}

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
/** The variables with which the hook names its pod, because an address alone does not identify the pod (`identify.ts`). */
const WHO_ASKS = [
  field('POD_NAME', 'metadata.name'),
  field('POD_NAMESPACE', 'metadata.namespace'),
  field('POD_UID', 'metadata.uid')
]

/** The containers that the annotation names. Without the annotation: those with ports, or if none has ports, all except the sidecars. */
function serving(pod: unknown, spec: Fields): readonly Target[] {
  const annotations = fieldsOf(fieldsOf(fieldsOf(pod)['metadata'])['annotations'])
  const written = annotations[CONTAINERS]
  const named = typeof written === 'string' ? written.split(',').map(name => name.trim()) : undefined
  const all = [
    ...targetsOf(spec, 'containers'),
    ...targetsOf(spec, 'initContainers').filter(({ container }) => container['restartPolicy'] === 'Always')
  ]
  const hasPorts = ({ container }: Target) => listOf(container['ports']).length > 0
  if (named) return all.filter(({ container }) => named.includes(textOf(container['name']) ?? ''))
  return all.some(hasPorts) ? all.filter(hasPorts) : all.filter(({ main }) => main)
}

const targetsOf = (spec: Fields, list: 'containers' | 'initContainers'): Target[] =>
  listOf(spec[list]).map((container, index) => ({
    path: `/spec/${list}/${index}`,
    container: fieldsOf(container),
    main: list === 'containers'
  }))

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
