import type { Waiting } from '../../agent/rules/drain/drain.ts'
import type { PodUid } from '../../agent/rules/drain/facts.ts'
import { until } from './apisix.ts'
import type { HookReply } from './hook.ts'
import type { TestPod } from './pods.ts'
import type { Rig } from './rig.ts'

/**
 * Ends the pod, and brings its deadline forward when `holds` is true for the verdict of its drain. The test decides when that
 * is, so a busy machine cannot. The pod needs a grace that is longer than the test. The deadline is over at once; with
 * `reserveSeconds` (the agent's `drain.reserve`) it comes eight seconds later, after the agent has seen the new grace, and the reserve follows it. Returns the answer.
 */
export async function expires(
  rig: Rig,
  pod: TestPod,
  what: string,
  holds: (verdict: Waiting) => boolean,
  reserveSeconds?: number
): Promise<HookReply> {
  const endedAt = performance.now()
  rig.end(pod)
  let answered = false
  const hook = rig.hook(pod).finally(() => (answered = true))
  await until(what, () => {
    if (answered) throw new Error(`the hook was answered before this: ${what}`)
    const drain = rig.agent.loop.drains().get(pod.uid as PodUid)
    return drain?.phase === 'draining' && drain.verdict.kind === 'waiting' && holds(drain.verdict)
  })
  const seconds = Math.ceil((performance.now() - endedAt) / 1000)
  // Kubernetes counts the grace from the first delete.
  rig.end(pod, reserveSeconds === undefined ? 1 : seconds + reserveSeconds + 8)
  return await hook
}
