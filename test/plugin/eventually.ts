import { setTimeout as wait } from 'node:timers/promises'

/** Polls until `check` returns true; after `ms` it fails with the name of the condition and the last error. The bound only ends a test that hangs. */
export async function eventually(
  what: string,
  check: () => Promise<boolean> | boolean,
  ms = 120_000
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
