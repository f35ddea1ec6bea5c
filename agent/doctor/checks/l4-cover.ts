import type { BarrierClient } from '../../gateway/apisix/barrier-api.ts'
import { everyWorkerCoversL4 } from '../../round/gather/hidden-places.ts'

/**
 * Whether every gateway answers that it seals and counts L4 sessions too. False if a gateway does not answer.
 *
 * @param hosts the addresses of all gateways, without brackets
 */
export async function answersThatL4IsCovered(
  barrier: Pick<BarrierClient, 'at'> | undefined,
  hosts: readonly string[],
  signal?: AbortSignal
): Promise<boolean> {
  if (!barrier) return false
  const states = await Promise.all(
    hosts.map(host =>
      barrier
        .at(host)
        .state(signal)
        .catch(() => undefined)
    )
  )
  return everyWorkerCoversL4(states)
}
