import { setTimeout as wait } from 'node:timers/promises'

/** Waits until `check` gives true, looking often; fails with what was waited for, and the last error, after `ms`. */
export async function eventually(
  what: string,
  check: () => Promise<boolean> | boolean,
  ms = 10_000
): Promise<void> {
  const end = Date.now() + ms
  let last: unknown
  while (Date.now() < end) {
    try {
      if (await check()) return
      last = undefined
    } catch (error) {
      last = error
    }
    await wait(10)
  }
  throw new Error(`not within ${ms} ms: ${what}`, { cause: last })
}
