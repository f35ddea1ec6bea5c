import type { InjectSettings } from './settings.ts'

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
