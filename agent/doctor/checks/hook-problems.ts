import { isIP } from 'node:net'
import type { PodFact, ServiceFact } from '../../rules/drain/facts.ts'
import { formatDuration } from '../../rules/drain/duration.ts'
import type { HookSpec } from './check-hooks.ts'

/** Finds a Service. `none`: it does not exist; `undefined`: Services of that namespace are not read. */
export type FindService = (namespace: string, name: string) => ServiceFact | 'none' | undefined

/** The mistakes in one hook, each with a remedy; empty if there are none. */
export function hookProblems(hook: HookSpec, pod: PodFact, findService: FindService): readonly string[] {
  const { container, longestMs, named, followsProxy, failsOnError, hasFallback, isHttpGet } = hook
  const its = `the hook of container ${container}`
  const problems = [targetProblem(hook, pod, findService)]
  if (longestMs !== undefined && longestMs > pod.graceMs) {
    problems.push(
      `${its} may take ${formatDuration(longestMs)} with its sleeps, longer than terminationGracePeriodSeconds (${formatDuration(pod.graceMs)}): raise the grace or lower the hook's -m`
    )
  }
  if (pod.hostNetwork && !isHttpGet) {
    problems.push(
      `${its} comes from its host's address (hostNetwork), so only a deletion of the pod is drained: give the pod a network of its own`
    )
  }
  if (!named) {
    problems.push(
      `${its} does not name its pod: add namespace and pod to its URL, or it is refused where packets leave with another address`
    )
  }
  if (followsProxy) {
    problems.push(
      `${its} follows the proxy of its environment: add --noproxy "*" (curl), --no-proxy (GNU wget) or -Y off (busybox)`
    )
  }
  if (isHttpGet) {
    problems.push(
      `${its} is an httpGet, so any answer counts and nothing waits after a failure, and it comes from its host's address, so a restart of the container drains nothing: use exec`
    )
  } else {
    if (!failsOnError) problems.push(`${its} takes a refusal of the agent for success: add -f to curl`)
    if (!hasFallback) {
      problems.push(`${its} has no fallback, so nothing waits if no agent answers: add "|| sleep 5" to it`)
    }
  }
  return problems.filter(problem => problem !== undefined)
}

function targetProblem(
  { container, target }: HookSpec,
  pod: PodFact,
  findService: FindService
): string | undefined {
  if (target === undefined) return undefined
  const { host, port } = target
  const its = `the hook of container ${container}`
  if (host === '') return `${its} calls its own pod: write the address of the agents' Service in httpGet.host`
  const named = serviceOf(host, pod.namespace)
  if (named === undefined) return undefined
  const service = findService(named.namespace, named.name)
  if (service === undefined) return undefined
  if (service === 'none') {
    return `${its} calls ${host}, and there is no Service ${named.name} in namespace ${named.namespace}: correct the host of its URL`
  }
  const ports = service.ports.map(({ port: known }) => known)
  // A headless Service has no ports of its own: the pods' ports are used.
  if (ports.length === 0 || ports.includes(port) || service.clusterIps.length === 0) return undefined
  return `${its} calls port ${port}, and Service ${named.namespace}/${named.name} has port ${ports.join(', ')}: correct the port of its URL`
}

/** The Service that a host name means in the cluster; `undefined` for an address, or a name outside the cluster. */
function serviceOf(host: string, namespace: string): { name: string; namespace: string } | undefined {
  if (isIP(host) !== 0 || host.startsWith('[')) return undefined
  const [name = '', second, third] = host.split('.')
  if (second === undefined) return { name, namespace }
  return third === undefined || third === 'svc' ? { name, namespace: second } : undefined
}
