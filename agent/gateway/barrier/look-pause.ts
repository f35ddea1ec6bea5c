/** In ms. The pause is the time since the last change divided by `share`, within the other values, and at least `each` per entry. */
const LOOK_MS = { shortest: 20, busy: 50, longest: 500, share: 20, each: 0.2 }

/**
 * The pause before the next poll of entries, in ms. These polls show bypasses, long-lived connections, and progress before the seal. An
 * answer with hundreds of entries costs CPU on both sides. While requests are in flight (`busy`), reports change all the time. That is
 * no reason to poll more often, so the shortest pause is then longer. `unchangedFor`: since a report or the desired entries last changed.
 */
export function lookPause(entries: number, busy: boolean, unchangedFor: number): number {
  const shortest = Math.max(busy ? LOOK_MS.busy : LOOK_MS.shortest, entries * LOOK_MS.each)
  return Math.max(shortest, Math.min(LOOK_MS.longest, unchangedFor / LOOK_MS.share))
}
