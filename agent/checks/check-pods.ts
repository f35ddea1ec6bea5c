import { formatDuration } from '../drain/duration.ts'
import { budgetProblems } from '../drain/budget.ts'
import { toPodFact } from '../facts/pod-fact.ts'
import { fail, ok, warn, wordsOf, type Check, type Finding } from './finding.ts'
import { hooksOf } from './check-hooks.ts'

interface PodBudget {
  readonly reserveMs: number
  /** The longest wait for the weakest evidence that counts. */
  readonly needMs: number
}

/** Every pod with the agent's hook has a grace long enough for it; the hook names its pod and uses no proxy. One finding per owner. */
export function checkPods(
  pages: (signal: AbortSignal) => AsyncIterable<readonly unknown[]>,
  budget: PodBudget
): Check {
  return async signal => {
    const problems = new Map<string, { readonly owner: string; readonly problem: string; pods: number }>()
    let hooked = 0
    try {
      for await (const page of pages(signal)) {
        for (const pod of page) {
          const found = inspect(pod, budget)
          if (!found) continue
          hooked += 1
          for (const problem of found.problems) {
            const key = `${found.owner} ${problem}`
            const known = problems.get(key) ?? { owner: found.owner, problem, pods: 0 }
            known.pods += 1
            problems.set(key, known)
          }
        }
      }
    } catch (err) {
      return [fail('pods', `the pods cannot be listed: ${wordsOf(err)}`, 'see kubernetes and rbac')]
    }
    if (hooked === 0) {
      return [
        warn(
          'pods',
          'no pod has a preStop hook that calls /v1/prestop or runs apisix-drain-hook',
          'add the hook of the README to the pods behind APISIX'
        )
      ]
    }
    if (problems.size === 0) return [ok('pods', `${hooked} pods with our hook, each with grace enough`)]
    return [...problems.values()].map(({ owner, problem, pods }): Finding =>
      warn('pods', `${owner} (${pods} ${pods === 1 ? 'pod' : 'pods'}): ${problem}`, 'change the pod template')
    )
  }
}

/** `undefined` for a pod without the agent's hook. */
function inspect(
  pod: unknown,
  budget: PodBudget
): { readonly owner: string; readonly problems: readonly string[] } | undefined {
  const hooks = hooksOf(pod)
  const fact = toPodFact(pod)
  if (!fact || hooks.length === 0) return undefined
  const tooLong = hooks.flatMap(({ container, longestMs }) =>
    longestMs !== undefined && longestMs > fact.graceMs
      ? [
          `the hook of container ${container} may take ${formatDuration(longestMs)} with its fallback, longer than terminationGracePeriodSeconds (${formatDuration(fact.graceMs)}): raise the grace or lower the hook's -m`
        ]
      : []
  )
  const unnamed = hooks
    .filter(({ named }) => !named)
    .map(
      ({ container }) =>
        `the hook of container ${container} does not name its pod: add namespace and pod to its URL, or it is refused where packets leave with another address`
    )
  const proxied = hooks
    .filter(({ followsProxy }) => followsProxy)
    .map(
      ({ container }) =>
        `the hook of container ${container} follows the proxy of its environment: add --noproxy "*" (curl) or --no-proxy (wget)`
    )
  const owner = `${fact.namespace}/${fact.owner ?? fact.name}`
  return { owner, problems: [...budgetProblems(fact, budget), ...tooLong, ...unnamed, ...proxied] }
}
