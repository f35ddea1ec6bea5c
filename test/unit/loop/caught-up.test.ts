import { expect } from 'chai'
import { caughtUp } from '../../../agent/loop/caught-up.ts'
import type { Resource } from '../../../agent/plan/holder.ts'
import { holder } from '../../build/holder.ts'

type Revisions = Partial<Record<Resource, number>>

/** One gateway for each list of workers; each worker says what it has applied. */
function areCaughtUp(
  listed: Revisions,
  gateways: readonly (readonly Revisions[] | undefined)[],
  mode = 'etcd'
) {
  const holders = Object.entries(listed).map(([resource, revision]) => ({
    ...holder(resource, []),
    resource,
    revision
  }))
  const sources = {
    inventory: { holders: () => new Map(holders.map(one => [one.resource, one])) },
    mode: { current: () => ({ mode }) },
    cluster: { gateways: () => gateways.map((_, id) => ({ id: String(id) })) }
  }
  const state = (id: string) => {
    const workers = gateways[Number(id)]
    return workers && { told: { workers: workers.map(revisions => ({ revisions })) } }
  }
  return caughtUp(sources as never, { state } as never)()
}

describe('whether the workers have caught up', () => {
  it('takes every worker of every gateway, and every kind of object that is listed', () => {
    const listed = { upstreams: 7, routes: 9 }
    const upToDate = { upstreams: 7, routes: 12, services: 3 }
    expect(areCaughtUp(listed, [[upToDate, upToDate], [upToDate]])).to.equal(true)
    expect(areCaughtUp(listed, [[upToDate, upToDate], [{ ...upToDate, upstreams: 6 }]])).to.equal(false)
    expect(areCaughtUp(listed, [[upToDate, { ...upToDate, routes: 8 }], [upToDate]])).to.equal(false)
  })

  it('is no where a gateway has told nothing, or nothing of a kind', () => {
    expect(areCaughtUp({ upstreams: 7 }, [[{ upstreams: 7 }], undefined])).to.equal(false)
    expect(areCaughtUp({ upstreams: 7 }, [[{ routes: 9 }]])).to.equal(false)
  })

  it('leaves streams aside, of which no worker tells', () => {
    expect(areCaughtUp({ upstreams: 7, stream_routes: 99 }, [[{ upstreams: 7 }]])).to.equal(true)
  })

  it('is not known of documents', () => {
    expect(areCaughtUp({ upstreams: 7 }, [[{ upstreams: 7 }]], 'standalone')).to.equal(false)
  })
})
