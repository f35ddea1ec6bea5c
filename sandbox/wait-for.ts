import { setTimeout as wait } from 'node:timers/promises'

const LOOK_EVERY_MS = 20

/** What has not come by then does not come, on any machine. */
export const WITHIN_MS = 120_000

interface Bounds {
  readonly withinMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Polls until `holds` is true. Rejects after `withinMs`, if the signal aborts, or if `holds` throws. */
export async function waitFor(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { withinMs = WITHIN_MS, signal }: Bounds = {}
): Promise<void> {
  const end = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${withinMs / 1000} s: ${what}`)
    await wait(LOOK_EVERY_MS, undefined, signal ? { signal } : {})
  }
}
