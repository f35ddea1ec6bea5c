import { expect } from 'chai'
import type { PodFact, ServiceFact } from '../../../../agent/rules/drain/facts.ts'
import { type Holder, nodesOf } from '../../../../agent/rules/plan/holder.ts'
import { createServiceStore } from '../../../../agent/kubernetes/facts/service-store.ts'
import {
  answersOf,
  elsewhere,
  hiddenPlaces,
  unaskable,
  waysTo,
  type Behind
} from '../../../../agent/rules/plan/hidden.ts'
import { holder } from '../../../build/holder.ts'
import { pod } from '../../../build/pod.ts'
import { serviceFact } from '../../../build/service.ts'
import { sliceOf } from '../../../build/sync-world.ts'
import { worldOf } from '../../../build/world.ts'

const service = (name: string, differs: Partial<ServiceFact> = {}): ServiceFact =>
  serviceFact(name, { uid: name, ports: [], ...differs })

/** Returns a store of these Services of type ExternalName. */
function aliasesOf(services: readonly ServiceFact[]) {
  const { store, sink } = createServiceStore()
  for (const one of services) sink.set(one)
  return store
}

/** Returns the nodes that hide the pod. */
function hiding(
  nodes: readonly string[],
  {
    others = [],
    place = 'upstreams/web',
    ...given
  }: Partial<Behind> & { others?: readonly PodFact[]; place?: string } = {},
  fact = pod('web-1')
): string[] {
  const web: Holder = { ...holder('web', nodes), key: place }
  const behind: Behind = {
    services: [service('web')],
    elsewhere: [],
    aliasesTo: () => [],
    servicesKnown: true,
    isNodePort: () => false,
    ...given
  }
  const ways = waysTo(worldOf([web], [fact, ...others]), fact, behind)
  const places = [
    ...unaskable(fact, [], ways, behind),
    ...hiddenPlaces(ways, [...ways.keys()].flatMap(answersOf([web])), 0)
  ]
  return places.map(({ why }) => why.split(' ')[0]!)
}

describe('places that hide a pod', () => {
  it('are addresses of the pod that only a slice shows, if the pod’s own ones are known', () => {
    const [web, other] = [pod('web-1', { ips: ['10.0.0.1'] }), pod('web-2', { ips: ['10.0.0.2'] })]
    const slices = [
      sliceOf('net1', [
        { ...web, ips: ['10.9.0.1'] },
        { ...other, ips: ['10.9.0.2'] }
      ])
    ]
    const found = elsewhere(web, [...slices, sliceOf('own', [web, other])])
    expect(found.map(({ address }) => address)).to.deep.equal(['10.9.0.1'])
    expect(elsewhere(other, slices).map(({ address }) => address)).to.deep.equal(['10.9.0.2'])
    expect(elsewhere({ ...web, ips: [] }, slices)).to.deep.equal([])
    expect(elsewhere(pod('web-3', { ips: ['10.0.0.3'] }), slices)).to.deep.equal([])
    expect(hiding(['10.0.0.1:80', '10.9.0.1:80', '10.9.0.2:80'], { elsewhere: found })).to.deep.equal([
      '10.9.0.1:80'
    ])
    const of = (differs: Partial<PodFact>) => [pod('other', { ips: ['10.9.0.1'], ...differs })]
    expect(hiding(['10.9.0.1:80'], { elsewhere: found, others: of({}) })).to.deep.equal([])
    expect(hiding(['10.9.0.1:80'], { elsewhere: found, others: of({ hostNetwork: true }) })).to.have.length(1)
  })

  it('are the names of its Services, under any domain, and the names of its pods; no other name', () => {
    const names = [
      'web',
      'web.shop',
      'web.shop.svc',
      'WEB.shop.svc.cluster.local',
      'web.shop.svc.corp',
      'web-1.web.shop.svc.cluster.local'
    ]
    expect(hiding(names)).to.deep.equal(names)
    expect(
      hiding(['web.other', 'shop.example.com', 'web.example.com', 'web-1.web.shop', 'webshop'])
    ).to.deep.equal([])
  })

  it('are ExternalName Services, through any number of steps', () => {
    const aliases = aliasesOf([
      service('far', { externalName: 'near.shop.svc' }),
      service('near', { externalName: 'web.shop.svc.cluster.local.' }),
      service('loop', { externalName: 'loop.shop' }),
      service('outside', { externalName: 'web.example.com' })
    ])
    const names = ['far.shop', 'near.shop', 'loop.shop', 'outside.shop']
    expect(hiding(names, { aliasesTo: key => aliases.aliasesTo(key) })).to.have.members([
      'far.shop',
      'near.shop'
    ])
  })

  it('are found behind aliases that lead in a circle', () => {
    const aliases = aliasesOf([
      service('api', { namespace: 'blog', externalName: 'web.shop.svc' }),
      service('web', { externalName: 'api.blog.svc' })
    ])
    expect(hiding(['api.blog'], { aliasesTo: key => aliases.aliasesTo(key) })).to.deep.equal(['api.blog'])
  })

  it('are outer addresses of its Services; a NodePort that no list has hides nothing', () => {
    const services = [service('web', { external: ['192.0.2.1', 'lb.example.com'], nodePorts: [30090] })]
    const nodes = ['192.0.2.1:80', '192.0.2.2:80', 'lb.example.com:80']
    expect(hiding(nodes, { services })).to.have.members(['192.0.2.1:80', 'lb.example.com:80'])
  })

  it('are NodePorts at any address that is no pod’s, and the hostPort at the pod’s own host', () => {
    const nodes = [
      '10.9.0.1:30080',
      '10.9.0.2:30080',
      '10.9.0.1:30081',
      '10.0.0.9:30080',
      '10.9.0.1:9000',
      '10.9.0.2:9000'
    ]
    const services = [service('web', { nodePorts: [30080] })]
    const others = [pod('web-9', { ips: ['10.0.0.9'] })]
    expect(hiding(nodes, { services, others }), 'A26').to.deep.equal(['10.9.0.1:30080', '10.9.0.2:30080'])
    const fact = pod('web-1', { hostIp: '10.9.0.1', hostPorts: [9000] })
    expect(hiding([...nodes, '10.9.0.1'], {}, fact)).to.deep.equal(['10.9.0.1:9000', '10.9.0.1'])
  })

  it('are ports at the host’s address that no pod declares, also beside a listed one that the pod declares (A18)', () => {
    const onHost = { hostNetwork: true, ips: ['10.9.0.1'] }
    const nodes = ['10.9.0.1:8080', '10.9.0.1:9090', '10.9.0.2:8080']
    const others = [pod('dns', { ...onHost, containerPorts: [9090] })]
    const none = hiding(nodes, { others }, pod('web-1', { ...onHost, containerPorts: [] }))
    expect(none, 'of a pod that declares none, no port can be denied').to.deep.equal(['no', '10.9.0.1:8080'])
    const declares = (port: number) => pod('web-1', { ...onHost, containerPorts: [port] })
    expect(hiding(nodes, { others }, declares(8080))).to.deep.equal([])
    expect(hiding(nodes, { others }, declares(9100)), 'it may listen at 8080 too').to.deep.equal([
      '10.9.0.1:8080'
    ])
    const isNodePort = (port: number | undefined) => port === 8080
    expect(hiding(nodes, { others, isNodePort }, declares(9100))).to.deep.equal([])
  })

  it('are the ports at the host’s address beyond those that gateways deny: then the pod gets no 200 (S14)', () => {
    const ports = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
    const onHost = (count: number) => pod('web-1', { hostNetwork: true, containerPorts: ports(count) })
    expect(hiding([], {}, onHost(250))).to.deep.equal([])
    expect(hiding([], {}, onHost(251))).to.deep.equal(['more'])
    expect(nodesOf(onHost(20_000), ports(30_000))).to.have.length(250)
    expect(hiding([], {}, pod('web-1', { containerPorts: ports(300) }))).to.deep.equal([])
  })

  it('are its own address where APISIX connects past its balancer, at its host only its own ports', () => {
    const nodes = ['10.0.0.1:80', '10.0.0.2:80']
    expect(hiding(nodes)).to.deep.equal([])
    for (const place of ['routes/r/plugins/forward-auth', 'upstreams/web/kafka'])
      expect(hiding(nodes, { place })).to.deep.equal(['10.0.0.1:80'])
    expect(hiding(nodes, { place: 'routes/r/plugins/traffic-split/0/1' })).to.deep.equal([])
    const place = 'routes/r/plugins/opa'
    const onHost = (port: number) => pod('web-1', { hostNetwork: true, containerPorts: [port] })
    expect(hiding(nodes, { place }, onHost(80))).to.deep.equal(['10.0.0.1:80'])
    expect(hiding(nodes, { place, others: [onHost(80)] }, onHost(90))).to.deep.equal([])
  })

  it('are what another agent has asked for, and what a word leaves out', () => {
    const found = { way: '10.9.9.9', place: 'routes/r', node: '10.9.9.9:80', host: '10.9.9.9', port: 80 }
    const [other, more] = hiddenPlaces(new Map(), [found], 3)
    expect(other?.why).to.equal('10.9.9.9:80 is a way to it, by another agent')
    expect(more?.why).to.equal('3 more nodes may lead to it')
  })

  it('are more addresses and names than gateways look for', () => {
    const aliases = (count: number) =>
      aliasesOf(Array.from({ length: count }, (_, i) => service(`a${i}`, { externalName: 'web.shop.svc' })))
    const past = (count: number) => hiding([], { aliasesTo: key => aliases(count).aliasesTo(key) })
    expect(past(126)).to.deep.equal([])
    expect(past(127)).to.deep.equal(['more'])
  })

  it('are Services that cannot be read', () => {
    expect(hiding([], { servicesKnown: false })).to.have.length(1)
    expect(hiding([], { servicesKnown: false, services: [] })).to.deep.equal([])
  })
})
