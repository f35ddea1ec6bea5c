import { setTimeout as sleep } from 'node:timers/promises'

/** Calls `holds` until it does not reject. After `withinMs`, rejects with the last error of `holds`. */
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
