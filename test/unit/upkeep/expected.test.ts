import { expect } from 'chai'
import type { PodFact } from '../../../agent/rules/drain/facts.ts'
import { expectedNodes } from '../../../agent/upkeep/sync.ts'
import { holder } from '../../build/holder.ts'
import { pod, terminating } from '../../build/pod.ts'

const NOW = 1_000_000
const old = (name: string, ip: string) => pod(name, { ips: [ip], startedAt: NOW - 3_600_000 })
const young = (name: string, ip: string) => pod(name, { ips: [ip], startedAt: NOW - 2000 })

/** Makes a cluster in which these pods are the ready endpoints of the Service shop/web. */
function cluster(
  pods: PodFact[],
  differs: { services?: (pod: PodFact) => string[]; ready?: (pod: PodFact) => boolean } = {}
) {
  const services = differs.services ?? (() => ['web'])
  const serving = pods.map(p => ({
    address: p.ips[0]!,
    podUid: p.uid,
    ready: differs.ready?.(p) ?? true,
    serving: true,
    terminating: p.deletionAt !== undefined
  }))
  return {
    pods: {
      get: (uid: string) => pods.find(p => p.uid === uid),
      byIp: (ip: string) => pods.filter(p => p.ips.includes(ip))
    },
    slices: {
      servicesOf: ({ uid }: Pick<PodFact, 'uid'>) =>
        services(pods.find(p => p.uid === uid)!).map(name => ({ namespace: 'shop', name })),
      serving: () => serving
    }
  } as never
}

describe('expected nodes', () => {
  const a = old('a', '10.0.0.1')
  const b = old('b', '10.0.0.2')
  const c = young('c', '10.0.0.3')
  const web = holder('web', ['10.0.0.1:8080', '10.0.0.2:8080'])

  it('are ready endpoints that a holder following a Service does not list yet', () => {
    expect(expectedNodes(cluster([a, b, c]), web, NOW)).to.deep.equal(['10.0.0.3:8080'])
    expect(expectedNodes(cluster([a, b]), web, NOW)).to.deep.equal([])
  })

  it('are none if the holder lists only a part of the Service on purpose', () => {
    const d = old('d', '10.0.0.4')
    expect(expectedNodes(cluster([a, b, c, d]), web, NOW)).to.deep.equal([])
  })

  it('are never endpoints that are unready or terminating', () => {
    expect(expectedNodes(cluster([a, b, c], { ready: p => p !== c }), web, NOW)).to.deep.equal([])
    expect(expectedNodes(cluster([a, b, { ...c, ...terminating(NOW) }]), web, NOW)).to.deep.equal([])
  })

  it('are known even if a slice still lists a deleted pod', () => {
    const late = { ...old('d', '10.0.0.4'), ...terminating(NOW) }
    const behind = cluster([a, b, c, late]) as { slices: { serving(): { terminating: boolean }[] } }
    for (const endpoint of behind.slices.serving()) endpoint.terminating = false
    expect(expectedNodes(behind as never, web, NOW)).to.deep.equal(['10.0.0.3:8080'])
  })

  it('are none if the Service, port or pod is ambiguous', () => {
    const two = cluster([a, b, c], { services: () => ['web', 'web-canary'] })
    expect(expectedNodes(two, web, NOW)).to.deep.equal([])
    const mixed = cluster([a, b, c], { services: p => (p === b ? ['api'] : ['web']) })
    expect(expectedNodes(mixed, web, NOW)).to.deep.equal([])
    const ports = holder('web', ['10.0.0.1:8080', '10.0.0.2:9090'])
    expect(expectedNodes(cluster([a, b, c]), ports, NOW)).to.deep.equal([])
    const shared = cluster([{ ...a, hostNetwork: true }, b, c])
    expect(expectedNodes(shared, web, NOW)).to.deep.equal([])
    expect(expectedNodes(cluster([a, b, c]), holder('web', ['web.local:80']), NOW)).to.deep.equal([])
    expect(expectedNodes(cluster([a, b, c], { services: () => [] }), web, NOW)).to.deep.equal([])
  })
})
