import type { Barrier } from '../../sandbox/apisix/barrier.ts'

/** The longest time between two reads of an entry, in seconds. */
const BETWEEN = 1

/**
 * Sets the wall clock of a gateway. Returns the entries that have another time left than before. Entries expire by a clock
 * that is never set (docs/decisions/0019), so this must change nothing.
 */
export function setClock(barrier: Barrier, byMs: number): readonly string[] {
  const look = () => new Map(barrier.entries.all().map(({ uid, ip, ttl }) => [`${uid} at ${ip}`, ttl]))
  const before = look()
  barrier.clockAheadMs += byMs
  const after = look()
  return [...before].flatMap(([entry, ttl]) => {
    const left = after.get(entry) ?? 0
    const holds = ttl < BETWEEN || Math.abs(left - ttl) < BETWEEN
    return holds ? [] : [`a clock that was set made ${Math.round(ttl)} s of ${entry} ${Math.round(left)} s`]
  })
}
