import { expect } from 'chai'
import type { PodFact } from '../../../../agent/rules/drain/facts.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { tellLeadsTo } from '../../../../agent/doctor/checks/check-holders.ts'
import { leadsTo, type LeadsToFacts } from '../../../../agent/rules/plan/hidden.ts'
import { holder } from '../../../build/holder.ts'
import { pod } from '../../../build/pod.ts'
import { answersIn, worldOf } from '../../../build/world.ts'

/** Calls `leadsTo` with a world in which the first part of a pod's name is its Service. */
const found = (holders: readonly Holder[], pods: readonly PodFact[], differs: Partial<LeadsToFacts> = {}) =>
  leadsTo({
    world: worldOf(holders, pods),
    pods,
    isL4: () => false,
    behind: ({ namespace, name, ips }, isListed) => ({
      ...answersIn(holders)({ ips }),
      services: [{ namespace, name: name.split('-')[0]! }],
      elsewhere: [],
      aliasesTo: () => [],
      servicesKnown: true,
      isNodePort: () => false,
      isListed
    }),
    ...differs
  })

const told = (...given: Parameters<typeof found>) =>
  found(...given).map(
    ({ holder, node, pods }) => `${holder} ${node} ${pods.map(p => p.split('/')[1]).join(' ')}`
  )

const at = (name: string, ip: string, differs: Partial<PodFact> = {}) => pod(name, { ips: [ip], ...differs })

describe('places that lead to pods', () => {
  it('are reported once, with the pods of the Service', () => {
    const pods = [at('web-1', '10.0.0.1'), at('web-2', '10.0.0.2'), at('api-1', '10.0.0.3')]
    const holders = [holder('a', ['web.shop:80']), holder('b', ['web.shop:80', 'api.shop.svc:80'])]
    expect(told(holders, pods)).to.have.members([
      'upstreams/a web.shop:80 web-1 web-2',
      'upstreams/b web.shop:80 web-1 web-2',
      'upstreams/b api.shop.svc:80 api-1'
    ])
  })

  it('are reported separately for each pod with ports of its host', () => {
    const pods = [
      at('web-1', '10.0.0.1', { hostIp: '10.9.0.1', hostPorts: [9000] }),
      at('web-2', '10.0.0.2', { hostIp: '10.9.0.2', hostPorts: [9000] })
    ]
    expect(told([holder('a', ['10.9.0.1:9000', '10.9.0.2:9000'])], pods)).to.deep.equal([
      'upstreams/a 10.9.0.1:9000 web-1',
      'upstreams/a 10.9.0.2:9000 web-2'
    ])
  })

  it('are holders that are proxied as L4, once for all of their pods', () => {
    const pods = [at('web-1', '10.0.0.1'), at('web-2', '10.0.0.2')]
    const holders = [holder('s', ['10.0.0.1:80', '10.0.0.2:80']), holder('h', ['10.0.0.1:80'])]
    const isL4 = (key: string) => key === 'upstreams/s'
    expect(told(holders, pods, { isL4 })).to.deep.equal(['upstreams/s null web-1 web-2'])
    expect(found(holders, pods, { isL4 })[0]?.why).to.match(/^each of its nodes is proxied as L4/)
  })

  it('name a few of many pods, and give their number', () => {
    const pods = Array.from({ length: 9 }, (_, i) => at(`web-${i}`, `10.0.0.${i}`))
    const [place] = found([{ ...holder('a', ['web.shop:80']), name: 'shop_web' }], pods)
    expect(place).to.include({ count: 9, name: 'shop_web' })
    expect(tellLeadsTo(place!)).to.equal(
      'upstreams/a (shop_web): web.shop:80 is a name of Service shop/web; it may lead to 9 pods (shop/web-0, shop/web-1, shop/web-2, shop/web-3, shop/web-4 and others)'
    )
  })

  it('are reported for one pod, and for a holder without a name', () => {
    const [place] = found([holder('a', ['web.shop:80'])], [at('web-1', '10.0.0.1')])
    expect(tellLeadsTo(place!)).to.equal(
      'upstreams/a: web.shop:80 is a name of Service shop/web; it may lead to 1 pod (shop/web-1)'
    )
  })

  it('are none while Services are not known yet', () => {
    const behind: LeadsToFacts['behind'] = () => ({
      services: [{ namespace: 'shop', name: 'web' }],
      elsewhere: [],
      aliasesTo: () => [],
      servicesKnown: false,
      isNodePort: () => false,
      ...answersIn([])({ ips: [] }),
      isListed: false
    })
    expect(told([], [at('web-1', '10.0.0.1')], { behind })).to.deep.equal([])
  })
})
