import type { Clock } from '../../base/clock.ts'
import { gatewayEndsAt, type Heard } from '../../rules/proof/observed.ts'
import type { Log } from '../../base/log.ts'
import type { Sources } from './sources.ts'

/** How often gateways are checked without an event, in ms: a silent gateway ends by time alone. */
const LOOK_MS = 1000

/** Removes gateways that are not Ready, or vanished, from the list as soon as they can route no request. Returns a function that stops the checks. */
export function watchVanished(
  { cluster, barrier, probe }: Pick<Sources, 'cluster' | 'barrier' | 'probe'>,
  clock: Clock,
  log: Log
): () => void {
  const heard = (id: string): Heard[] => {
    const state = barrier?.state(id)
    const read = probe?.freshness(id)
    const control = {
      lastSuccessAt: read?.lastSuccessAt ?? undefined,
      lastAttemptAt: read?.lastAttemptAt ?? undefined,
      refused: read?.refused ?? false
    }
    return state ? [state, control] : [control]
  }
  const look = (): void => {
    for (const gateway of cluster.gateways()) {
      if (gatewayEndsAt(gateway, heard(gateway.id)) > clock.now()) continue
      log.info({ gateway: gateway.name }, 'a gateway that is not Ready can route no request any more')
      cluster.gatewayEnded(gateway.id)
    }
  }
  let cancel = () => {}
  const schedule = (): void => {
    cancel = clock.alarm(clock.now() + LOOK_MS, () => {
      look()
      schedule()
    })
  }
  schedule()
  const ends = [probe, barrier].flatMap(part => part?.onChange(look) ?? [])
  return () => {
    cancel()
    for (const end of ends) end()
  }
}
