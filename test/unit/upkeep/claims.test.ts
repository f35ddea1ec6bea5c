import { expect } from 'chai'
import type { ServiceFact } from '../../../agent/drain/facts.ts'
import { createClaims } from '../../../agent/upkeep/claims.ts'

const service = (name: string, upstream: string): ServiceFact => ({
  uid: name,
  namespace: 'shop',
  name,
  ports: [{ name: 'http', port: 80 }],
  clusterIps: [],
  external: [],
  nodePorts: [],
  externalName: undefined,
  annotations: { 'apisix-drain.io/upstream': upstream }
})

describe('the claims of Services', () => {
  it('are read again only when a Service changed', () => {
    let asking = [service('web', 'a')]
    const claims = createClaims(
      () => asking,
      () => {}
    )
    expect(claims.refresh()).equal(true)
    expect([...claims.all().keys()]).eql(['upstreams/a'])
    expect(claims.refresh()).equal(false)
    asking = [service('web', 'a'), service('api', 'a')]
    expect([...claims.all().keys()], 'as before, until they are read').eql(['upstreams/a'])
    expect(claims.refresh()).equal(true)
    expect(claims.all().size).equal(0)
    expect([...claims.problems().keys()]).eql(['shop/web', 'shop/api'])
  })

  it('have each problem reported once, until its text changes, and its end reported too', () => {
    const told: [string, string | undefined][] = []
    const claims = createClaims(
      () => [service('web', 'a'), service('api', 'b')],
      ({ name }, why) => told.push([name, why])
    )
    const found = new Map([['shop/web', 'it does not exist']])
    claims.report(found)
    claims.report(found)
    expect(told).eql([['web', 'it does not exist']])
    expect(claims.reported()).eql(found)
    claims.report(new Map([['shop/web', 'it belongs to ADC']]))
    claims.report(new Map())
    expect(told.slice(1)).eql([
      ['web', 'it belongs to ADC'],
      ['web', undefined]
    ])
  })
})
