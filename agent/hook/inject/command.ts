import type { InjectSettings } from './settings.ts'

/** The length of the fallback if the grace has room for it, in seconds. */
const FALLBACK_S = 5

/**
 * The preStop command for a pod with this grace, in s. The agent has the grace less the fallback and one second for its answer. The sleep
 * of the fallback runs from the start, so that the time spent counts.
 */
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
  // Without a connection, each try takes a second, and so does each pause. All of them must end with the sleep.
  const pauses = fallback >= 5 ? '0 1 1' : fallback >= 3 ? '0 1' : '0'
  const named = `${url}?namespace=$POD_NAMESPACE&pod=$POD_NAME&sleep=${fallback}s`
  const call = `curl -fsS -m ${budget} --noproxy "*" --connect-timeout 1 -X POST "${named}"`
  // curl returns 22 for an HTTP error, which no further try changes.
  const tries = `for pause in ${pauses}; do sleep $pause; ${call} && exit; [ $? = 22 ] && break; done; false`
  return ['sh', '-c', `sleep ${fallback} & timeout ${budget} sh -c '${tries}' && kill $! || wait`]
}
