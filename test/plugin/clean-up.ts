import { expect } from 'chai'
import type { Backend } from './backend.ts'
import { eventually } from './eventually.ts'
import type { Gateway } from './gateway.ts'

/** Stops the gateway and the pods. A test may not have started all of them, so each may be undefined. */
export async function stopAll(gateway: Gateway | undefined, ...pods: (Backend | undefined)[]): Promise<void> {
  await gateway?.stop()
  for (const pod of pods) await pod?.kill()
}

/** Waits until nothing is in flight to these pods. */
export const idle = async ({ barrier }: Gateway, ...pods: Backend[]): Promise<void> =>
  await eventually('nothing is in flight', async () => {
    const told = await barrier.put(...pods.map(p => p.entry({ uid: `look-${p.name}` })))
    await barrier.remove(...told.entries.map(e => e.uid))
    return told.entries.every(e => e.inflight.requests === 0 && e.inflight.long === 0)
  })

export async function removeEntries({ barrier }: Gateway): Promise<void> {
  const { entries } = await barrier.state()
  await barrier.remove(...entries.map(e => e.uid))
}

/** Removes every entry, and waits until nothing is in flight to these pods. Expects that the plugin had no error, and missed no request. */
export async function emptied(gateway: Gateway, ...pods: Backend[]): Promise<void> {
  await removeEntries(gateway)
  await idle(gateway, ...pods)
  const { counts, unfit } = await gateway.barrier.state()
  expect(counts.errors, gateway.errors()).to.equal(0)
  expect(unfit.join()).to.not.include('past the barrier')
}
