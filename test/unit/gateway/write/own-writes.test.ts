import { expect } from 'chai'
import { createOwnWrites } from '../../../../agent/gateway/write/own-writes.ts'
import { holder } from '../../../build/holder.ts'
import { manualClock } from '../../../build/manual-clock.ts'

const A = '10.0.0.1:80'
const B = '10.0.0.2:80'

describe('the writer that puts a node back', () => {
  const web = holder('web', [A, B])
  const rig = () => {
    const clock = manualClock(1000)
    const writes = createOwnWrites(clock)
    const wrote = (...removed: readonly string[]) =>
      writes.wrote({
        target: { resource: 'upstreams', id: 'web' },
        edits: [{ holder: web, remove: new Set(removed), add: [] }],
        answered: true
      } as unknown as Parameters<typeof writes.wrote>[0])
    return { writes, wrote }
  }

  it('is the agent if its later write still listed the node', () => {
    const { writes, wrote } = rig()
    wrote(B)
    expect(writes.whoPutBack(web, A, 900)).equal('our own write')
  })

  it('is another one if the agent has not listed the node since, or has written nothing', () => {
    const { writes, wrote } = rig()
    expect(writes.whoPutBack(web, A, 900)).not.equal('our own write')
    wrote(A)
    expect(writes.whoPutBack(web, A, 900)).not.equal('our own write')
    expect(writes.whoPutBack(web, B, 1001)).not.equal('our own write')
  })
})
