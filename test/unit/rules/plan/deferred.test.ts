import { expect } from 'chai'
import { begin } from '../../../../agent/rules/drain/step.ts'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

/** Returns why the plan keeps each node of an ingress controller's holder, 1 s after the node's pod began to end. */
function kept(...pods: readonly PodFact[]) {
  const nodes = pods.map(({ ips: [ip] }) => `${ip}:80`)
  const owned = { ...holder('web', nodes), owner: 'ingress-controller-2' as const }
  const ending = pods.filter(({ deletionAt }) => deletionAt !== undefined)
  const drains = drainsOf(ending.map(one => begin(seen(one), 0, DRAIN_SETTINGS)!))
  const settings = { dryRun: false, deferMs: 2000 }
  const planned = plan(worldOf([owned], pods), drains, 1000, settings)
  expect(planned.changes).to.deep.equal([])
  return Object.fromEntries(planned.kept.map(({ node, why }) => [node, why]))
}

describe('a holder that is left to its owner', () => {
  const ends = (name: string, ip: string) => pod(name, { ips: [ip], ...terminating(0) })

  it('is not written for a while', () => {
    expect(kept(ends('a', '10.0.0.1'), pod('b', { ips: ['10.0.0.2'] }))).to.deep.equal({
      '10.0.0.1:80': 'deferred'
    })
  })

  it('reports its last node as kept, and the others as deferred', () => {
    expect(kept(ends('a', '10.0.0.1'))).to.deep.equal({ '10.0.0.1:80': 'last-node' })
    expect(kept(ends('a', '10.0.0.1'), ends('b', '10.0.0.2'))).to.deep.equal({
      '10.0.0.1:80': 'last-node',
      '10.0.0.2:80': 'deferred'
    })
  })
})
