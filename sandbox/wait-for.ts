import { setTimeout as wait } from 'node:timers/promises'

const LOOK_EVERY_MS = 20

/** Polls until `holds` is true. Rejects after `timeoutMs`, if the signal aborts, or if `holds` throws. */
export async function waitFor(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs: number,
  signal?: AbortSignal
): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`)
    await wait(LOOK_EVERY_MS, undefined, signal ? { signal } : {})
  }
}
