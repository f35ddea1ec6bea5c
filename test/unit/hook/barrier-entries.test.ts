import { expect } from 'chai'
import { barrierEntries, readSecret, type BarrierEntriesParts } from '../../../agent/hook/barrier-entries.ts'

const ENTRY = { uid: 'uid-1', ip: '10.0.0.1', state: 'sealed', ttl: 60 } as const
const parts = (differs: Partial<BarrierEntriesParts> = {}): BarrierEntriesParts => ({
  token: () => 'secret',
  entries: () => [ENTRY],
  vouch: () => ({ ok: true }),
  ...differs
})

describe('barrier entries', () => {
  it('are given to a gateway that shows the secret made from the token, or, as 0.1.0 does, the token', async () => {
    for (const shown of [readSecret('secret'), 'secret']) {
      const response = barrierEntries(parts(), `Bearer ${shown}`)
      expect(response.status).to.equal(200)
      expect(await response.json()).to.deep.equal({ entries: [ENTRY] })
    }
    expect(readSecret('secret')).to.match(/^[\w+/]{27}=$/)
  })

  it('are refused without the token', async () => {
    for (const shown of [
      undefined,
      '',
      'secret',
      'Bearer',
      'Bearer wrong',
      'Basic secret',
      'Bearer secret2',
      `Bearer ${readSecret('other')}`
    ]) {
      const response = barrierEntries(parts(), shown)
      expect(response.status, shown).to.equal(401)
      expect(await response.text())
        .to.not.include('10.0.0.1')
        .and.not.include('secret"')
    }
  })

  it('are refused while the agent may not know all of them', async () => {
    const response = barrierEntries(
      parts({ vouch: () => ({ ok: false, why: 'not synced' }) }),
      'Bearer secret'
    )
    expect(response.status).to.equal(503)
    expect(await response.json()).to.deep.equal({ error: 'cannot-vouch', why: 'not synced' })
  })

  it('are at most as many as a plugin accepts', async () => {
    const many = Array.from({ length: 1200 }, (_, i) => ({ ...ENTRY, uid: `uid-${i}` }))
    const response = barrierEntries(parts({ entries: () => many }), 'Bearer secret')
    expect(((await response.json()) as { entries: unknown[] }).entries).to.deep.equal(many.slice(0, 1000))
  })
})
