import { expect } from 'chai'
import { createGate } from '../../../agent/hook/gate.ts'

describe('gate', () => {
  const enter = (gate: ReturnType<typeof createGate>) => {
    const place = gate.enter()
    if (!place.ok) throw new Error(place.why)
    return place
  }

  it('counts a hook that leaves twice once', () => {
    const gate = createGate({ maxHooks: 2, maxHooksPerPod: 2 })
    const [first, second] = [enter(gate), enter(gate)]
    first.claim('a')
    second.claim('a')
    first.leave()
    first.leave()
    expect(gate.waiting).to.equal(1)
    expect(enter(gate).claim('a')).to.equal(undefined)
    expect(gate.enter().ok).to.equal(false)
  })

  it('forgets a pod when the last of its hooks has left', () => {
    const gate = createGate({ maxHooks: 2, maxHooksPerPod: 1 })
    for (let i = 0; i < 3; i++) {
      const place = enter(gate)
      expect(place.claim('a'), `time ${i}`).to.equal(undefined)
      place.leave()
    }
    const [one, two] = [enter(gate), enter(gate)]
    one.claim('a')
    expect(two.claim('a')?.error).to.equal('too-many-hooks-of-pod')
    two.leave()
    expect(gate.waiting).to.equal(1)
  })

  it('is empty at once where nobody waits', async () => {
    await createGate({ maxHooks: 1, maxHooksPerPod: 1 }).emptied(new AbortController().signal)
  })
})
