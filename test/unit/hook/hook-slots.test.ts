import { expect } from 'chai'
import { createHookSlots } from '../../../agent/hook/prestop.ts'

describe('hook slots', () => {
  const enter = (slots: ReturnType<typeof createHookSlots>) => {
    const slot = slots.enter()
    if (!slot.ok) throw new Error(slot.why)
    return slot
  }

  it('counts a hook that leaves twice once', () => {
    const slots = createHookSlots({ maxHooks: 2, maxHooksPerPod: 2 })
    const [first, second] = [enter(slots), enter(slots)]
    first.claim('a')
    second.claim('a')
    first.leave()
    first.leave()
    expect(slots.waiting).to.equal(1)
    expect(enter(slots).claim('a')).to.equal(undefined)
    expect(slots.enter().ok).to.equal(false)
  })

  it('forgets a pod when the last of its hooks has left', () => {
    const slots = createHookSlots({ maxHooks: 2, maxHooksPerPod: 1 })
    for (let i = 0; i < 3; i++) {
      const slot = enter(slots)
      expect(slot.claim('a'), `time ${i}`).to.equal(undefined)
      slot.leave()
    }
    const [one, two] = [enter(slots), enter(slots)]
    one.claim('a')
    expect(two.claim('a')?.error).to.equal('too-many-hooks-of-pod')
    two.leave()
    expect(slots.waiting).to.equal(1)
  })
})
