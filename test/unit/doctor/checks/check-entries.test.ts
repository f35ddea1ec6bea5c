import { expect } from 'chai'
import type { BarrierState } from '../../../../agent/gateway/apisix/barrier-wire.ts'
import { checkEntries } from '../../../../agent/doctor/checks/check-gateways.ts'
import { staticGateway } from '../../../../agent/kubernetes/facts/gateway-fact.ts'

const entry = (by: string | undefined, ttl = 60): BarrierState => ({
  uid: 'u',
  ip: '10.0.0.1',
  state: 'draining',
  ttl,
  inflight: { requests: 0, long: 0 },
  bypasses: 0,
  ...(by !== undefined && { by })
})

describe('doctor: entries', () => {
  const found = async (readEntries: () => Promise<readonly BarrierState[] | undefined>) => {
    const list = async () => [staticGateway({ name: 'g1', host: '127.0.0.1' })]
    const check = checkEntries({ list, readEntries }, { by: 'apisix/drain', ttlMs: 60_000 })
    return (await check(new AbortController().signal)).map(({ level, what }) => `${level} ${what}`)
  }

  it('are in order if this release put them, and renews them', async () => {
    expect(await found(async () => [entry('apisix/drain', 41)])).to.deep.equal([
      'ok agents of this release claim every entry in the gateways'
    ])
  })

  it('names the writers of the others, and counts own entries that are not renewed', async () => {
    const many = ['b/b', 'c/c', 'd/d', 'e/e', 'f/f'].map(by => entry(by))
    expect(await found(async () => [entry(undefined), entry('apisix/drain', 29)])).to.deep.equal([
      'warn g1: no agent of this release claims 2 entries, put by an unknown writer, apisix/drain'
    ])
    expect(await found(async () => [...many, entry('a/a')])).to.deep.equal([
      'warn g1: no agent of this release claims 6 entries, put by a/a, b/b, c/c, d/d, e/e and 1 more'
    ])
  })

  it('cannot be judged if the plugin is older, or if the gateway does not answer', async () => {
    const unknown = ['ok no gateway reports who has put its entries']
    expect(await found(async () => undefined)).to.deep.equal(unknown)
    expect(await found(() => Promise.reject(new Error('refused')))).to.deep.equal(unknown)
  })
})
