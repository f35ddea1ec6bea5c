import { expect } from 'chai'
import * as fc from 'fast-check'
import {
  ApiError,
  isExpired,
  parseRetryAfter,
  retryAfterOf,
  watchError
} from '../../../../agent/kubernetes/transport/objects.ts'
import {
  createBackoff,
  combine,
  staticPart,
  type WatchState
} from '../../../../agent/kubernetes/reflect/watch-status.ts'
import { pathOf, podsIn, slicesIn, isLater } from '../../../../agent/kubernetes/reflect/collection.ts'
import { createExpectations } from '../../../../agent/kubernetes/reflect/assurance.ts'
import { createIntern } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { portOf, same } from '../../../../agent/base/read.ts'
import { createTombstones } from '../../../../agent/kubernetes/facts/pod-store.ts'
import { manualClock } from '../../../build/manual-clock.ts'

describe('watch: back-off', () => {
  it('doubles up to the maximum, and the jitter stays in the upper half', () => {
    const low = createBackoff(() => 0)
    const high = createBackoff(() => 0.999_999)
    const ceilings = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]
    for (const ceiling of ceilings) {
      expect(low(0)).to.equal(ceiling / 2)
      expect(high(0)).to.be.within(ceiling * 0.99, ceiling)
    }
  })

  it('starts over after a healthy time, and only then', () => {
    const backoff = createBackoff(() => 1)
    backoff(0)
    backoff(0)
    expect(backoff(9_999)).to.equal(200)
    expect(backoff(10_000)).to.equal(50)
  })
})

describe('watch: revisions', () => {
  it('are ordered as numbers, whatever their length', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n ** 70n }), fc.bigInt({ min: 1n, max: 2n ** 70n }), (a, b) => {
        expect(isLater(`${a}`, `${b}`)).to.equal(a > b)
      })
    )
  })

  it('that are no numbers prove nothing', () => {
    expect(isLater('abc', '1')).to.equal(false)
    expect(isLater('2', undefined)).to.equal(false)
    expect(isLater(undefined, '2')).to.equal(false)
    expect(isLater('2', '01')).to.equal(false)
  })
})

describe('watch: refusals of the API server', () => {
  const gone = { reason: 'Expired', message: 'too old resource version: 5 (8)', code: 410 }

  it('are told from other errors', () => {
    expect(isExpired(watchError('/pods', gone))).to.equal(true)
    expect(isExpired(new Error('410'))).to.equal(false)
  })

  it('has a readable message, and survives any body', () => {
    expect(watchError('/pods', gone).message).to.equal(
      'watch /pods: 410 Expired too old resource version: 5 (8)'
    )
    expect(watchError('/pods', null).status).to.equal(500)
    fc.assert(fc.property(fc.anything(), body => new ApiError('x', 500, body).status === 500))
  })

  it('carry how long to wait', () => {
    expect(parseRetryAfter(undefined, 0)).to.equal(undefined)
    expect(retryAfterOf(new ApiError('x', 429, {}, 700))).to.equal(700)
    expect(retryAfterOf(new Error('x'))).to.equal(0)
  })
})

describe('watch: expectations', () => {
  const set = () => {
    const missed: string[] = []
    const clock = manualClock()
    return { clock, missed, expectations: createExpectations(clock, why => missed.push(why)) }
  }

  it('are met by any revision at or past them', () => {
    const { clock, missed, expectations } = set()
    expectations.expect('10', 100, 'a')
    expectations.expect('12', 100, 'b')
    expectations.seen('9')
    expectations.seen('10')
    expectations.seen('100')
    clock.advance(1_000)
    expect(missed).to.deep.equal([])
    expect(clock.pending).to.equal(0)
  })

  it('that are not met are reported once, when the earliest is due, and all are forgotten', () => {
    const { clock, missed, expectations } = set()
    expectations.expect('10', 100, 'late')
    expectations.expect('11', 50, 'early')
    clock.advance(49)
    expect(missed).to.deep.equal([])
    clock.advance(1)
    expect(missed).to.deep.equal(['early'])
    clock.advance(1_000)
    expect(missed).to.deep.equal(['early'])
    expect(clock.pending).to.equal(0)
  })

  it('without a revision are met by anything', () => {
    const { clock, missed, expectations } = set()
    expectations.expect(undefined, 100, 'a')
    expectations.seen('1')
    clock.advance(200)
    expect(missed).to.deep.equal([])
  })
})

describe('watch: small parts', () => {
  it('same: facts are compared deeply, and absent is undefined', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        expect(same(value, structuredClone(value))).to.equal(true)
      })
    )
    expect(same({ a: 1 }, { a: 1, b: undefined })).to.equal(true)
    for (const [a, b] of [
      [{ a: 1 }, { a: 2 }],
      [{ a: 1 }, { a: 1, b: 1 }],
      [{ a: 1, b: 1 }, { a: 1 }],
      [[1, 2], [1]],
      [[], {}],
      [null, {}],
      [1, '1']
    ]) {
      expect(same(a, b), JSON.stringify([a, b])).to.equal(false)
    }
  })

  it('tombstones: bounded by number, oldest first', () => {
    const stones = createTombstones<number>(manualClock(), 3)
    for (const [i, uid] of ['a', 'b', 'c', 'a', 'd'].entries()) stones.add(uid, i)
    expect(stones.since(0)).to.have.length(3)
    expect(stones.get('b')).to.equal(undefined)
    expect(stones.get('a')?.fact).to.equal(3)
    stones.remove('a')
    expect(stones.get('a')).to.equal(undefined)
  })

  it('intern: equal values are one object, and the number kept is bounded', () => {
    const intern = createIntern(2)
    const ports = intern.value([80, 443])
    expect(intern.value([80, 443])).to.equal(ports)
    expect(['x', 'y', 'z', 'x'].map(text => intern.text(text))).to.deep.equal(['x', 'y', 'z', 'x'])
    intern.value([1])
    intern.value([2])
    expect(intern.value([80, 443])).not.to.equal(ports)
  })

  it('collections: paths and queries', () => {
    expect(pathOf(podsIn(undefined))).to.equal('/api/v1/pods')
    expect(pathOf(podsIn('apisix', 'app=apisix,tier!=x'), { limit: 1, continue: '' })).to.equal(
      '/api/v1/namespaces/apisix/pods?labelSelector=app%3Dapisix%2Ctier%21%3Dx&limit=1'
    )
    expect(pathOf(slicesIn('shop'))).to.equal('/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices')
  })

  it('ports: are whole numbers from 1 to 65535', () => {
    expect([1, 65_535, 0, 65_536, 1.5, '80', null].map(portOf)).to.deep.equal([
      1,
      65_535,
      ...Array.from({ length: 5 })
    ])
  })

  it('parts: one status for several watches is as good as the worst', () => {
    const status = (state: WatchState, lastEventAt: number | undefined, problem = '') => ({
      ...staticPart('pods', 2),
      state,
      synced: state !== 'connecting',
      lastEventAt,
      problem
    })
    const both = combine('pods', [status('live', 7), status('stale', 5, 'cut')])
    expect(both).to.include({ state: 'stale', synced: true, lastEventAt: 5, problem: 'cut', objects: 4 })
    const fresh = combine('pods', [status('live', 7), status('connecting', undefined)])
    expect(fresh).to.include({ state: 'connecting', synced: false, lastEventAt: undefined })
  })
})
