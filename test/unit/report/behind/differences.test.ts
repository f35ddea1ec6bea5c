import { expect } from 'chai'
import { holderClock, unsealedIn, withUnsealed } from '../../../../agent/report/behind/differences.ts'
import { firstSeen } from '../../../../agent/rules/members/behind.ts'
import { holder } from '../../../build/holder.ts'
import type { Drain, GatewayReport, Waiting } from '../../../../agent/rules/drain/drain.ts'
import type { HolderKey } from '../../../../agent/rules/plan/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { waitingDrain } from '../../../build/snapshot.ts'

it('blames the agent for a holder that it fills itself', () => {
  const nodes = new Map([['10.0.0.2:80', 5]])
  const clocks = { ...firstSeen(1, [], 0), nodes, owes: 5 }
  const { behind } = holderClock({ holder: holder('web', []), clocks }, 20, () => true)
  expect(behind?.cause).to.equal('sync')
})

const WEB = 'upstreams/web' as HolderKey
const report = (name: string, differs: object = {}) =>
  ({
    name,
    grade: undefined,
    at: undefined,
    why: 'the entry is not sealed yet',
    ...differs
  }) as GatewayReport
const drain = (gateways: readonly GatewayReport[], verdict: Partial<Waiting> = {}): Drain => {
  const one = waitingDrain()
  return {
    ...one,
    since: 5400,
    pod: pod('web-1', terminating(5000)),
    decidedAt: 5000,
    verdict: {
      ...(one.phase === 'draining' ? one.verdict : {}),
      gateways,
      holders: [{ key: WEB, state: 'removed', why: '' }],
      ...verdict
    }
  } as Drain
}
const status = { heardAt: 5400, places: new Map() }
const found = (...drains: readonly Drain[]) => unsealedIn(drains, () => status as never).get(WEB)

describe('gateways that have not sealed an ending pod', () => {
  it('are behind from the decision of Kubernetes on, with the pod and the reason', () => {
    expect(found(drain([report('apisix-0', { sealedAt: 5450 }), report('apisix-1')]))).to.deep.equal([
      {
        gateway: 'apisix-1',
        since: 5400,
        why: 'shop/web-1 ends: the entry is not sealed yet'
      }
    ])
  })

  it('are not if they were seen without the pod, if all have sealed, or if a last endpoint is held as planned', () => {
    expect(found(drain([report('apisix-0', { at: 5450, grade: 'observed' })]))).to.equal(undefined)
    expect(found(drain([report('apisix-0', { sealedAt: 5450 })]))).to.equal(undefined)
    expect(found(drain([report('apisix-0')], { lastEndpoint: true }))).to.equal(undefined)
  })

  it('join the clock of their holder: each gateway once, with its oldest change', () => {
    const unsealed = found(drain([report('apisix-0'), report('apisix-1')]))
    const older = { gateway: 'apisix-0', since: 4000, why: 'older' }
    const clock = {
      missing: [],
      notReady: [],
      behind: { since: 4000, owner: 4000, cause: 'owner' as const, gateways: [older] }
    }
    const joined = withUnsealed(clock, unsealed)
    expect(joined.behind).to.deep.include({ since: 4000, owner: 4000, cause: 'owner' })
    expect(joined.behind?.gateways.map(({ gateway, since }) => [gateway, since])).to.deep.equal([
      ['apisix-0', 4000],
      ['apisix-1', 5400]
    ])
    const quiet = { ...clock, behind: null }
    expect(withUnsealed(quiet, unsealed).behind).to.include({ since: 5400, cause: 'gateways' })
    expect(withUnsealed(quiet, undefined)).to.equal(quiet)
  })
})
