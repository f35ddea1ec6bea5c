import { expect } from 'chai'
import type { Endpoint, EndpointFact, PodFact, ServiceFact } from '../../../../agent/rules/drain/facts.ts'
import { claimsOf, type Claim } from '../../../../agent/rules/members/claim.ts'
import { settleClaims } from '../../../../agent/rules/members/settle.ts'
import { membersOf, type PodsKnown } from '../../../../agent/rules/members/members.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { asking, serviceFact } from '../../../build/service.ts'

const service = (name: string, upstream: string | undefined): ServiceFact =>
  serviceFact(name, {
    ports: [
      { name: 'http', port: 80 },
      { name: 'grpc', port: 81 }
    ],
    annotations: upstream === undefined ? {} : asking({ upstream })
  })

describe('members of a claimed upstream', () => {
  const web = pod('web-1')
  const claim = (differs: Partial<Claim> = {}): Claim => ({
    service: service('web', 'http=web'),
    holder: 'upstreams/web',
    id: 'web',
    port: 'http',
    ...differs
  })
  const slice = (endpoint: Partial<Endpoint> = {}, differs: Partial<EndpointFact> = {}) =>
    ({
      family: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: [
        {
          address: '10.0.0.1',
          podUid: web.uid,
          ready: true,
          serving: true,
          terminating: false,
          ...endpoint
        }
      ],
      ...differs
    }) as EndpointFact
  const known = (found: PodFact | undefined, differs: Partial<PodsKnown> = {}): PodsKnown => ({
    pod: () => found,
    isGone: () => false,
    isDraining: () => false,
    ...differs
  })
  const members = (facts: EndpointFact, pods = known(web), of = claim()) => [...membersOf(of, [facts], pods)]

  it('are ready endpoints on the claimed port, and no host names', () => {
    expect(members(slice())).to.deep.equal(['10.0.0.1:8080'])
    expect(members(slice({}, { family: 'FQDN' }))).to.deep.equal([])
    expect(members(slice(), known(web), claim({ port: 'grpc' }))).to.deep.equal([])
    expect(members(slice({ ready: false }))).to.deep.equal([])
    expect(members(slice({ ready: false, podUid: undefined }))).to.deep.equal([])
    expect(members(slice({ terminating: true }))).to.deep.equal([])
  })

  it('are never pods that are gone, ending or finished, even if the slice lists them', () => {
    expect(members(slice(), known(web, { isGone: () => true }))).to.deep.equal([])
    expect(members(slice(), known(web, { isDraining: () => true }))).to.deep.equal([])
    expect(members(slice(), known({ ...web, ...terminating(0) }))).to.deep.equal([])
    expect(members(slice(), known({ ...web, phase: 'Failed' }))).to.deep.equal([])
  })

  it('are endpoints whose pod is not known yet, and those that have none', () => {
    expect(members(slice(), known(undefined))).to.have.length(1)
    expect(members(slice({ podUid: undefined }), known(undefined))).to.have.length(1)
  })
})

describe('claims', () => {
  it('are none without an annotation', () => {
    expect(claimsOf(service('web', undefined))).to.deep.equal({ claims: [], problems: [] })
  })

  it('that meet in two upstreams are two problems of the later Service', () => {
    const both = 'http=web, grpc=web-2'
    const { claims, problems } = settleClaims([service('a', both), service('b', both)], () => true)
    expect([...claims.values()].map(claim => claim.service.name)).to.deep.equal(['a', 'a'])
    expect([...problems.keys()]).to.deep.equal(['shop/b'])
    expect(problems.get('shop/b')).to.match(
      /upstreams\/web follows shop\/a.*; upstreams\/web-2 follows shop\/a/
    )
  })
})
