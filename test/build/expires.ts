import type { Waiting } from '../../agent/rules/drain/drain.ts'
import type { PodUid } from '../../agent/rules/drain/facts.ts'
import { until } from './apisix.ts'
import type { HookReply } from './hook.ts'
import type { TestPod } from './pods.ts'
import type { Rig } from './rig.ts'

/**
 * Ends the pod, waits until `holds` is true for the verdict of its drain, and then shortens the grace. Returns the answer to the
 * hook. So the test decides when the deadline comes, on a busy machine too. The pod's first grace must be longer than the test.
 * The new deadline is already over. With `reserveSeconds` (the agent's `drain.reserve`) the agent's deadline comes eight seconds
 * later, so that the agent has seen the new grace by then.
 */
export async function expires(
  rig: Rig,
  pod: TestPod,
  what: string,
  holds: (verdict: Waiting) => boolean,
  reserveSeconds?: number
): Promise<HookReply> {
  const endedAt = performance.now()
  let answered = false
  const hook = rig.drain(pod).finally(() => (answered = true))
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
