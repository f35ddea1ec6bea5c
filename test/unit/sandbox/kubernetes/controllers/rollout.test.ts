import { expect } from 'chai'
import type { Deployment } from '../../../../../sandbox/kubernetes/objects.ts'
import {
  boundsOf,
  newSetSize,
  oldSetSizes,
  recreateSizes,
  type Arm
} from '../../../../../sandbox/kubernetes/controllers/rollout.ts'
import { deployment } from './workload.ts'

const bounds = (replicas: number, maxSurge: number | string, maxUnavailable: number | string) =>
  boundsOf(
    deployment('web', { replicas, strategy: { rollingUpdate: { maxSurge, maxUnavailable } } }) as Deployment
  )

const arm = (id: string, wanted: number, available = wanted, actual = wanted): Arm => ({
  id,
  wanted,
  available,
  actual
})

describe('sandbox/kubernetes rollout', () => {
  it('rounds maxSurge up and maxUnavailable down, and never lets both be 0', () => {
    expect(bounds(10, '25%', '25%')).to.deep.equal({ replicas: 10, maxSurge: 3, maxUnavailable: 2 })
    expect(bounds(3, 0, '10%')).to.deep.equal({ replicas: 3, maxSurge: 0, maxUnavailable: 1 })
    expect(bounds(3, 1, 0)).to.deep.equal({ replicas: 3, maxSurge: 1, maxUnavailable: 0 })
    expect(bounds(2, '100%', 5)).to.deep.equal({ replicas: 2, maxSurge: 2, maxUnavailable: 2 })
  })
  it('grows the new set up to maxSurge, and never beyond the wanted number', () => {
    expect(newSetSize(arm('n', 0), [arm('o', 4)], bounds(4, 1, 0))).to.equal(1)
    expect(newSetSize(arm('n', 0), [arm('o', 4)], bounds(4, 0, 1))).to.equal(0)
    expect(newSetSize(arm('n', 0), [], bounds(4, 1, 0))).to.equal(4)
    expect(newSetSize(arm('n', 6), [], bounds(4, 1, 0))).to.equal(4)
    expect(newSetSize(arm('n', 1), [arm('o', 3, 4, 4)], bounds(4, 1, 0))).to.equal(1)
  })
  it('takes from the old sets what the bound allows: first pods that do not serve; and waits for new ones that do not serve yet', () => {
    const left = (fresh: Arm, old: readonly Arm[], unavailable: number) =>
      [...oldSetSizes(fresh, old, bounds(4, 1, unavailable)).values()].join()
    expect(left(arm('n', 1, 0), [arm('o', 4)], 0)).to.equal('4')
    expect(left(arm('n', 1, 1), [arm('o', 4)], 0)).to.equal('3')
    expect(left(arm('n', 1, 0), [arm('o', 4)], 1)).to.equal('3')
    expect(left(arm('n', 1, 1), [arm('o', 2), arm('p', 2, 0)], 1)).to.equal('2,0')
    expect(left(arm('n', 4, 4), [arm('o', 1)], 0)).to.equal('0')
    expect(left(arm('n', 4, 3), [arm('o', 1)], 0)).to.equal('1')
    expect([...recreateSizes(arm('n', 0), [arm('o', 4)], 4, 1)].join()).to.equal('o,0,n,0')
    expect([...recreateSizes(arm('n', 0), [arm('o', 0)], 4, 0)].join()).to.equal('o,0,n,4')
  })
})
