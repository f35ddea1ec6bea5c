import { annotationReader, PREFIX } from '../../rules/drain/annotations.ts'
import { annotationsOf } from '../../kubernetes/facts/pod-fact.ts'
import { fieldsOf, listOf, numberOf, textOf, type Fields } from '../../base/read.ts'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'

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

/** The length of the fallback if the grace has room for it, in seconds. */
const FALLBACK_S = 5

/**
 * The preStop command for a pod with this grace, in s. The agent has the grace less the fallback and one second for its answer. The sleep
 * of the fallback runs from the start, so that the time spent counts.
 *
 * @param container whose hook it is: if only that one stops, only its ports are drained
 * @param sleep the sleep that the hook replaces, in s, or 0: its fallback, and its least time, for it covered other traffic than APISIX's
 */
export function commandFor(
  { hook, url }: Pick<InjectSettings, 'hook' | 'url'>,
  grace: number,
  { container, sleep }: { readonly container: string; readonly sleep: number }
): readonly string[] {
  const byDefault = grace >= 20 ? FALLBACK_S : Math.floor(grace / 4)
  const budget = grace - byDefault - 1
  const fallback = sleep || byDefault
  if (hook === 'helper') {
    const agent = url.replace(/\/v1\/prestop$/, '')
    const times = ['--budget', `${budget}s`, '--fallback', `${fallback}s`, '--container', container]
    const least = sleep > 0 ? ['--at-least', `${sleep}s`] : []
    return ['/apisix-drain/apisix-drain-hook', '--url', agent, ...times, ...least]
  }
  // Without a connection, all tries and pauses must end a good while before the sleep: to start processes takes time too.
  const pauses = fallback >= 5 ? '0 1 1' : fallback >= 3 ? '0 1' : '0'
  const named = `${url}?namespace=$POD_NAMESPACE&pod=$POD_NAME&container=${container}&sleep=${fallback}s${sleep > 0 ? `&atLeast=${sleep}s` : ''}`
  const call = `curl -fsS -m ${budget} --noproxy "*" --connect-timeout 0.7 -X POST "${named}"`
  // curl returns 22 for an HTTP error, which no further try changes.
  const tries = `for pause in ${pauses}; do sleep $pause; ${call} && exit; [ $? = 22 ] && break; done; false`
  return ['sh', '-c', `sleep ${fallback} & timeout ${budget} sh -c '${tries}' && kill $! 2>/dev/null || wait`]
}

const object = z.record(z.string(), z.unknown())

/** The content of `inject.file`, written by the chart: the same parts as in its MutatingAdmissionPolicy. */
const injectSettings = z.strictObject({
  /** The host name that the API server calls and that the certificate is for. */
  host: z.string().min(1),
  /** PEM files: the certificate, and its key. */
  certificateFile: z.string().min(1),
  keyFile: z.string().min(1),
  hook: z.enum(['helper', 'curl']),
  /** The URL that hooks call: `http://apisix-drain.apisix:8080/v1/prestop`. */
  url: z.url(),
  /** The parts that install the helper, if the hook uses it. */
  initContainer: object.optional(),
  volumes: z.array(
    z.strictObject({
      volume: z.looseObject({ name: z.string() }),
      mount: z.looseObject({ mountPath: z.string() })
    })
  )
})

export type InjectSettings = z.infer<typeof injectSettings>

/** @throws Error if the file is unreadable, or is not of the form that the chart writes */
export const readInjectSettings = (file: string): InjectSettings =>
  injectSettings.parse(parse(readFileSync(file, 'utf8')))

/** A certificate with its chain, and its key. PEM. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

type Files = Pick<InjectSettings, 'certificateFile' | 'keyFile'>

/** How often the files are read, in ms. The kubelet takes a minute to change them. */
const EVERY_MS = 10_000

/** @throws Error if a file cannot be read */
export const readPair = ({ certificateFile, keyFile }: Files): Pair => ({
  certificate: readFileSync(certificateFile, 'utf8'),
  key: readFileSync(keyFile, 'utf8')
})

/**
 * Calls `use` with the pair in the files, and with each later one. A problem is logged once, and the last good pair stays in use: the
 * files may be missing at the start, or be read in the middle of a change. Returns the function that stops it.
 *
 * @param use throws if the pair is unusable
 */
export function followPair(
  files: Files,
  use: (pair: Pair) => void,
  parts: { clock: Clock; log: Log }
): () => void {
  const ended = new AbortController()
  let used: string | undefined
  let problem: string | undefined
  void follow()
  return () => ended.abort(new Error('the agent is stopping'))

  async function follow(): Promise<void> {
    while (!ended.signal.aborted) {
      read()
      await parts.clock.sleep(EVERY_MS, ended.signal).catch(() => {})
    }
  }

  function read(): void {
    try {
      const pair = readPair(files)
      if (pair.certificate !== used) use(pair)
      used = pair.certificate
      problem = undefined
    } catch (err) {
      const message = String(err)
      if (message !== problem)
        parts.log.warn({ err }, 'the certificate of the webhook cannot be used, so pods get no hook')
      problem = message
    }
  }
}
