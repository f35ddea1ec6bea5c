import { setTimeout as sleep } from 'node:timers/promises'

/** Repeats `holds` until it does not reject, and rejects with its last error after `withinMs`. */
export async function eventually(holds: () => Promise<unknown>, withinMs = 60_000): Promise<void> {
  const until = Date.now() + withinMs
  for (;;) {
    try {
      await holds()
      return
    } catch (err) {
      if (Date.now() > until) throw err
      await sleep(200)
    }
  }
}
