import { budgetProblems } from '../../rules/drain/answer.ts'
import { readOptions, formatDuration } from '../../rules/drain/annotations.ts'
import { isOver } from '../../rules/drain/eligible.ts'
import type { PodFact } from '../../rules/drain/facts.ts'
import type { ServiceStore } from '../../kubernetes/facts/service-store.ts'
import {
  ok,
  warn,
  namesOf,
  wordsOf,
  type Check,
  type Finding,
  type ClusterLists,
  type SurveyedPods
} from './cluster-lists.ts'
import { hookProblems, type FindService } from './check-hooks.ts'
import { X509Certificate } from 'node:crypto'
import { readPair, type InjectSettings } from '../../hook/inject/inject.ts'

interface PodBudget {
  readonly reserveMs: number
  /** The longest wait for the weakest evidence that counts. */
  readonly needMs: number
}

/**
 * Checks that every pod with the agent's hook has a long enough grace and a correct hook, and that every pod that APISIX lists has a
 * hook. Each problem is one finding, which names the workloads that have it.
 *
 * @param namespaces the namespaces whose Services are read; empty: all
 */
export function checkPods(
  survey: Pick<ClusterLists, 'pods' | 'services' | 'inventory' | 'isOnlyApisix'>,
  budget: PodBudget,
  namespaces: readonly string[]
): Check {
  return async signal => {
    const read = await survey.pods(signal)
    // If one of these two lists cannot be read, only the findings that need it are left out. Other checks report the failure.
    const services = await survey.services(signal).catch(() => undefined)
    const inventory = await survey.inventory(signal).catch(() => undefined)
    const hosts = [...(inventory?.holders().values() ?? [])].flatMap(({ nodes }) =>
      nodes.map(({ host }) => host)
    )
    const bare = withoutHook(read, hosts)
    const missing = bare.length === 0 ? '' : `; APISIX lists ${tellWorkloads(bare)}`
    if (read.hooked.length === 0) {
      return [
        warn(
          'pods',
          `no pod has a preStop hook that calls /v1/prestop or runs apisix-drain-hook${missing}`,
          'add the hook of the README to the pods behind APISIX, or let the chart inject it (injection)'
        )
      ]
    }
    const findings = problemsOf(read, budget, finder(services, namespaces))
    if (bare.length > 0) {
      findings.push(
        warn(
          'pods',
          `no hook in pods that APISIX lists: ${tellWorkloads(bare)}`,
          'add the hook of the README to them, or let the chart inject it (injection); if they need none, annotate them with apisix-drain.io/skip'
        )
      )
    }
    if (findings.length === 0)
      findings.push(ok('pods', `${read.hooked.length} pods with our hook, each with grace enough`))
    return [...findings, ...(await replaced(read, survey.isOnlyApisix))]
  }
}

/** Names the pods whose sleep our hook replaces, and the time that `only-apisix` would save. */
async function replaced(
  { hooked }: SurveyedPods,
  isOnlyApisix: ClusterLists['isOnlyApisix']
): Promise<Finding[]> {
  const free = 'which is no least time, because all their requests come through APISIX'
  const podsOf = new Map<string, PodFact[]>()
  for (const { pod, hooks } of hooked) {
    const ms = Math.max(...hooks.map(({ atLeastMs = 0 }) => atLeastMs))
    if (ms === 0) continue
    const isFree = readOptions(pod.annotations).onlyApisix || (await isOnlyApisix(pod.namespace))
    const sleep = formatDuration(ms)
    const bound = `its least time: if all their requests come through APISIX, apisix-drain.io/only-apisix: "true" on the pods or their namespace saves up to ${sleep} of each end`
    const what = `our hook replaces a sleep of ${sleep}, ${isFree ? free : bound}`
    podsOf.set(what, [...(podsOf.get(what) ?? []), pod])
  }
  return [...podsOf].map(([what, pods]) => ok('pods', `${tellWorkloads(pods)}: ${what}`))
}

function problemsOf({ hooked }: SurveyedPods, budget: PodBudget, findService: FindService): Finding[] {
  const problems = new Map<string, PodFact[]>()
  for (const { pod, hooks, early } of hooked) {
    if (isOver(pod)) continue
    const found = [
      ...(early.length > 0
        ? [
            `${early.join(', ')} end before the hook of ${hooks[0]?.container} is answered: add the hook to them as well`
          ]
        : []),
      ...budgetProblems(pod, budget),
      ...hooks.flatMap(hook => hookProblems(hook, pod, findService))
    ]
    for (const problem of found) {
      const pods = problems.get(problem)
      if (pods) pods.push(pod)
      else problems.set(problem, [pod])
    }
  }
  return [...problems].map(([problem, pods]) =>
    warn('pods', `${tellWorkloads(pods)}: ${problem}`, 'correct the template')
  )
}

/** Pods that a holder lists, without a hook of the agent and without the annotation `skip`. */
function withoutHook({ store, hooked }: SurveyedPods, hosts: readonly string[]): readonly PodFact[] {
  const known = new Set(hooked.map(({ pod }) => pod.uid))
  return [...new Set(hosts)]
    .flatMap(host => store.byIp(host))
    .filter(pod => !pod.hostNetwork && !known.has(pod.uid) && !readOptions(pod.annotations).skip)
}

function tellWorkloads(pods: readonly PodFact[]): string {
  const owners = Map.groupBy(pods, ({ namespace, owner, name }) => `${namespace}/${owner ?? name}`)
  return namesOf(
    [...owners].map(([owner, { length }]) => `${owner} (${length} ${length === 1 ? 'pod' : 'pods'})`)
  )
}

const finder =
  (services: ServiceStore | undefined, namespaces: readonly string[]): FindService =>
  (namespace, name) => {
    if (services === undefined || (namespaces.length > 0 && !namespaces.includes(namespace))) return undefined
    return services.byName(namespace, name) ?? 'none'
  }

/** A certificate that ends earlier than this, in ms, is warned about: its renewal is late. */
const SOON_MS = 7 * 86_400_000

/** Checks the webhook's certificate. Without a valid one, pods are still created, but without a hook: a warning, no failure. */
export function checkInjection(read: () => InjectSettings, now: () => number): Check {
  return async () => {
    const bad = (why: string) =>
      warn(
        'injection',
        `the webhook has no valid certificate, so pods are made without the hook: ${why}`,
        'look at the Secret of tls.webhook (chart), and at its cert-manager Certificate if there is one'
      )
    try {
      const settings = read()
      const certificate = new X509Certificate(readPair(settings).certificate)
      const until = certificate.validTo
      if (certificate.checkHost(settings.host) === undefined) return [bad(`it is not for ${settings.host}`)]
      if (certificate.validToDate.getTime() < now() + SOON_MS) return [bad(`it ends ${until}`)]
      return [ok('injection', `the webhook has a certificate until ${until}`)]
    } catch (err) {
      return [bad(wordsOf(err))]
    }
  }
}
