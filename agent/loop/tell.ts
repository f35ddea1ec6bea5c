import type { Observer } from '../loop.ts'
import type { Events } from '../serve/events.ts'
import { momentsOf } from './moments.ts'

/** Says on every pod, as a Kubernetes Event, how its drain went. */
export function tell(events: Events): Observer {
  return {
    drain(before, after, memory) {
      if (after && (before?.phase ?? 'draining') === 'draining') events.add(after, momentsOf(after, memory))
    }
  }
}
