import { setTimeout as wait } from 'node:timers/promises'
import type { TestPod } from '../build/pods.ts'
import { stalledMs } from '../build/stall.ts'
import { pick, type Stage } from './stage.ts'

const TRIES = 3
const BETWEEN_MS = 150
/** The length of the sleep that a hook falls back to. */
const FALLBACK_MS = 300
/** A hook that gets a proof is held longer than this if anything delays it. */
const SOON_MS = 500
/** A hook that nothing delays is answered in less than this time, even on a busy machine. */
const LONG_MS = 2000
/** A hook without an answer after this time counts as never answered, even on a busy machine. */
const NEVER_MS = 20_000
/** The documented hook ends all its tries after this time, within the pod's grace. */
const ALL_TRIES_MS = 3000

/**
 * Calls the agents like the documented hook: without an answer or a proof it retries at another agent, and in the end falls back
 * to a sleep. Resolves with the problems of the answers.
 *
 * @param expected `inFlight` returns the number of requests in flight, for which the hook must wait. `mayProve`: the agents know
 *   every gateway. `isUnhurt`: the hook gets a proof. `isWitness`: a barrier exists, so a hook shows an end that no watch shows
 */
export async function askHook(
  { rig, agents }: Stage,
  pod: TestPod,
  first: number,
  {
    inFlight,
    mayProve,
    isWitness,
    isUnhurt
  }: {
    readonly isWitness: boolean
    readonly inFlight: () => Promise<number>
    readonly mayProve: boolean
    readonly isUnhurt: boolean
  }
): Promise<readonly string[]> {
  const began = performance.now()
  for (let i = 0; i < TRIES; i++) {
    const agent = pick(agents, first + i)
    // An agent that never saw the deletion counts the grace from the call.
    const left = i === 0 ? NEVER_MS : began + ALL_TRIES_MS - performance.now()
    if (left <= 0) break
    const signal = AbortSignal.timeout(Math.ceil(left))
    const reply = await (agent && rig.hook(pod, '', signal, agent).catch(() => undefined))
    if (signal.aborted && i > 0) break
    if (signal.aborted) return [`the hook of ${pod.name} was never answered`]
    if (!mayProve && reply?.body.evidence === 'barrier')
      return [`${pod.name} was answered by the barrier of some gateways only`]
    const open = reply?.status === 200 ? await inFlight() : 0
    if (reply?.status === 200 && open > 0)
      return [`${pod.name} was answered ${reply.body.result} with ${open} requests in flight to it`]
    const heldMs = reply ? reply.ms - stalledMs(reply.calledAt, reply.at) : 0
    if (isUnhurt && reply?.body.result === 'unproved' && heldMs > LONG_MS)
      return [`${pod.name} was held until its deadline: ${reply.body.why}`]
    if (isUnhurt && reply?.body.result === 'unproved' && i === 0 && reply.ms < SOON_MS)
      return [`${pod.name} was refused at once: ${reply.body.why}`]
    if (isWitness && reply?.body.result === 'stays') return [`${pod.name} ends, and was told that it stays`]
    if (reply?.status === 200) return []
    if (reply && reply.status !== 503) return [`the hook of ${pod.name} was answered ${reply.status}`]
    await wait(BETWEEN_MS)
  }
  await wait(FALLBACK_MS)
  return []
}
