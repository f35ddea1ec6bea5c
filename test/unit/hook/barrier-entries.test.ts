import { expect } from 'chai'
import { barrierEntries, readSecret, type BarrierEntriesParts } from '../../../agent/hook/app.ts'

const ENTRY = { uid: 'uid-1', ip: '10.0.0.1', state: 'sealed', ttl: 60 } as const
const parts = (differs: Partial<BarrierEntriesParts> = {}): BarrierEntriesParts => ({
  token: () => 'secret',
  entries: () => [ENTRY],
  vouch: () => ({ ok: true }),
  ...differs
})

const SHOWN = `Bearer ${readSecret('secret')}`

describe('barrier entries', () => {
  it('are given to a gateway that shows the secret made from the token', async () => {
    const response = barrierEntries(parts(), 1, SHOWN)
    expect(response.status).to.equal(200)
    expect(await response.json()).to.deep.equal({ wire: 1, entries: [ENTRY] })
    expect(readSecret('secret')).to.match(/^[\w+/]{27}=$/)
  })

  for (const [version, older] of [
    [0, 'the plugin of this gateway'],
    [2, 'the agents']
  ] as const)
    it(`are refused for wire version ${version}, with what to upgrade`, async () => {
      const response = barrierEntries(parts(), version, SHOWN)
      expect(response.status).to.equal(409)
      expect(await response.json()).to.deep.equal({
        error: 'other-wire',
        why: `plugin and agent have different wire versions (${version} and 1): upgrade ${older}`,
        wire: 1
      })
    })

  it('are refused without the secret', async () => {
    for (const shown of [
      undefined,
      '',
      'secret',
      'Bearer',
      'Bearer wrong',
      'Bearer secret',
      'Basic secret',
      'Bearer secret2',
      `Bearer ${readSecret('other')}`
    ]) {
      const response = barrierEntries(parts(), 1, shown)
      expect(response.status, shown).to.equal(401)
      expect(await response.text())
        .to.not.include('10.0.0.1')
        .and.not.include('secret"')
    }
  })

  it('are refused while the agent may not know all of them', async () => {
    const response = barrierEntries(parts({ vouch: () => ({ ok: false, why: 'not synced' }) }), 1, SHOWN)
    expect(response.status).to.equal(503)
    expect(await response.json()).to.deep.equal({ error: 'cannot-vouch', why: 'not synced' })
  })

  it('are at most as many as a plugin accepts', async () => {
    const many = Array.from({ length: 1200 }, (_, i) => ({ ...ENTRY, uid: `uid-${i}` }))
    const given = async (entries: readonly object[]) => {
      const response = barrierEntries(parts({ entries: () => entries as never }), 1, SHOWN)
      return ((await response.json()) as { entries: unknown[] }).entries
    }
    expect(await given(many)).to.deep.equal(many.slice(0, 1000))
    const successors = { '80': Array.from({ length: 92 }, (_, i) => `10.0.1.${i}:80`) }
    expect(await given(many.map(one => ({ ...one, successors })))).to.have.lengthOf(180)
  })
})
