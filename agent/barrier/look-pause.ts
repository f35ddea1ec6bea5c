/** Growing with time since anything changed, by `share` of it, and with the number of entries. */
const LOOK_MS = { shortest: 20, busy: 50, longest: 500, share: 20, each: 0.2 }

/**
 * How long until entries that are not long-polled are read again, in ms: for bypasses, long-lived connections, and what goes on
 * before the seal. Hundreds of them make an answer that costs something on both sides. While requests go to one of them,
 * something changes all the time: that is no reason to look more often.
 */
export function lookPause({
  entries,
  busy,
  unchangedFor
}: {
  readonly entries: number
  /** Requests are in flight to one of them. */
  readonly busy: boolean
  /** Since anything changed, or was desired anew, in ms. */
  readonly unchangedFor: number
}): number {
  const shortest = Math.max(busy ? LOOK_MS.busy : LOOK_MS.shortest, entries * LOOK_MS.each)
  return Math.max(shortest, Math.min(LOOK_MS.longest, unchangedFor / LOOK_MS.share))
}
