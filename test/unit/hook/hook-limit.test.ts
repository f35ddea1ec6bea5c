import { expect } from 'chai'
import { createHookLimit } from '../../../agent/hook/hook-limit.ts'

describe('limit', () => {
  const enter = (limit: ReturnType<typeof createHookLimit>) => {
    const slot = limit.enter()
    if (!slot.ok) throw new Error(slot.why)
    return slot
  }

  it('counts a hook that leaves twice once', () => {
    const limit = createHookLimit({ maxHooks: 2, maxHooksPerPod: 2 })
    const [first, second] = [enter(limit), enter(limit)]
    first.claim('a')
    second.claim('a')
    first.leave()
    first.leave()
    expect(limit.waiting).to.equal(1)
    expect(enter(limit).claim('a')).to.equal(undefined)
    expect(limit.enter().ok).to.equal(false)
  })

  it('forgets a pod when the last of its hooks has left', () => {
    const limit = createHookLimit({ maxHooks: 2, maxHooksPerPod: 1 })
    for (let i = 0; i < 3; i++) {
      const slot = enter(limit)
      expect(slot.claim('a'), `time ${i}`).to.equal(undefined)
      slot.leave()
    }
    const [one, two] = [enter(limit), enter(limit)]
    one.claim('a')
    expect(two.claim('a')?.error).to.equal('too-many-hooks-of-pod')
    two.leave()
    expect(limit.waiting).to.equal(1)
  })

  it('is empty at once if no hook waits', async () => {
    await createHookLimit({ maxHooks: 1, maxHooksPerPod: 1 }).emptied(new AbortController().signal)
  })
})
