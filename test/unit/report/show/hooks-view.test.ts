import { expect } from 'chai'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import { createHooksView } from '../../../../agent/report/show/views.ts'
import { pod, terminating } from '../../../build/pod.ts'

describe('hooks of routed workloads', () => {
  const listed = '10.1.0.1'
  const view = (pods: readonly PodFact[], readAt: number | 'never' = 1) =>
    createHooksView(
      {
        cluster: { pods: { values: () => pods } },
        inventory: {
          byHost: host => (host === listed ? [{} as never] : []),
          readAt: () => (readAt === 'never' ? undefined : readAt)
        }
      },
      { now: () => 0 }
    )()
  const web = (name: string, differs: Partial<PodFact> = {}): PodFact => ({
    ...pod(name),
    namespace: 'shop',
    ready: true,
    ips: [listed],
    owner: 'ReplicaSet/web-5d7f9c',
    ...differs
  })

  it('names those without a hook, without a fallback, and with a container without a hook, by Deployment', () => {
    const pods = [
      web('a'),
      web('b', { owner: 'ReplicaSet/web-77aa' }),
      web('c', { owner: 'StatefulSet/db', hook: 'bare' }),
      web('d', { owner: undefined, hook: 'safe' }),
      web('e', { owner: 'DaemonSet/edge', hook: 'part' })
    ]
    expect(view(pods)).to.deep.equal({
      routed: 4,
      without: [{ name: 'shop/Deployment/web', pods: 2 }],
      bare: [{ name: 'shop/StatefulSet/db', pods: 1 }],
      early: [{ name: 'shop/DaemonSet/edge', pods: 1 }],
      counts: { without: 1, bare: 1, early: 1 }
    })
  })

  it('counts only pods that serve, and that a holder lists', () => {
    const others = [
      web('a', { ips: ['10.1.0.2'] }),
      web('b', { ready: false }),
      web('c', { hostNetwork: true }),
      web('d', terminating(5))
    ]
    expect(view(others).routed).to.equal(0)
    expect(view([web('a')], 'never').routed).to.equal(0)
  })

  it('names the first 20, and counts all', () => {
    const many = Array.from({ length: 30 }, (_, i) => web(`p${i}`, { owner: `StatefulSet/s${i}` }))
    const { without, counts } = view(many)
    expect([without.length, counts.without]).to.deep.equal([20, 30])
  })
})
