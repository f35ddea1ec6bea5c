import type { InjectSettings } from './settings.ts'

/** The length of the fallback if the grace has room for it, in seconds. */
const FALLBACK_S = 5

/** The preStop command for a pod with this grace, in s. The agent has the grace less the fallback and one second for its answer. */
export function commandFor(
  { hook, url }: Pick<InjectSettings, 'hook' | 'url'>,
  grace: number
): readonly string[] {
  const fallback = grace >= 20 ? FALLBACK_S : Math.floor(grace / 4)
  const budget = grace - fallback - 1
  if (hook === 'helper') {
    const agent = url.replace(/\/v1\/prestop$/, '')
    const times = ['--budget', `${budget}s`, '--fallback', `${fallback}s`]
    return ['/apisix-drain/apisix-drain-hook', '--url', agent, ...times]
  }
  const named = `${url}?namespace=$POD_NAMESPACE&pod=$POD_NAME`
  const call = `curl -fsS --noproxy "*" --connect-timeout 2 -X POST "${named}"`
  const tries = `for try in 1 2 3; do ${call} && exit; sleep 1; done; false`
  return ['sh', '-c', `timeout ${budget} sh -c '${tries}' || sleep ${fallback}`]
}
