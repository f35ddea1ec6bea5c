import type { Vouch } from '../serve/holds.ts'
import { isNeeded } from '../watch/parts.ts'
import type { Sources } from './sources.ts'

/** Whether a hook may be held at all. @param failing the last round did not come to its end */
export function vouch({ cluster, inventory, barrier }: Sources, failing: boolean): Vouch {
  if (failing) return { ok: false, why: 'the last round failed: see the log of the agent' }
  const part = cluster.parts().find(part => !part.synced && isNeeded(part.name))
  if (part) return { ok: false, why: `the watch of ${part.name} has not synced yet` }
  if (cluster.gateways().length === 0) {
    return { ok: false, why: 'no gateway is known: check apisix.gateways' }
  }
  if (inventory.readAt() === undefined && !barrier) {
    return { ok: false, why: `the holders have not been read yet: ${inventory.problem()}` }
  }
  return { ok: true }
}
