import { expect } from 'chai'
import { checkLease, LEASE_PERMISSIONS } from '../../../../agent/doctor/rights/check-lease.ts'
import type { AskKubernetes } from '../../../../agent/doctor/rights/check-kubernetes.ts'

const PLACE = { namespace: 'apisix', name: 'drain' }

describe('doctor: leader', () => {
  const asking =
    (
      allows: (verb: string) => boolean,
      status = 200,
      holderIdentity: string | null = 'agent-0'
    ): AskKubernetes =>
    async (method, _path, body) => {
      if (method === 'GET') {
        return { status, json: { metadata: { resourceVersion: '1' }, spec: { holderIdentity } } }
      }
      const { spec } = body as { spec: { resourceAttributes: { verb: string; name?: string } } }
      const { verb, name } = spec.resourceAttributes
      expect(name).to.equal(verb === 'create' ? undefined : 'drain')
      return { status: 201, json: { status: { allowed: allows(verb) } } }
    }
  const found = async (ask: AskKubernetes, place: typeof PLACE | undefined = PLACE) =>
    (await checkLease(ask, place)(AbortSignal.timeout(1000))).map(({ level, what }) => `${level} ${what}`)

  it('names the leader', async () => {
    expect(await found(asking(() => true))).to.deep.equal(['ok agent-0 holds the Lease apisix/drain'])
  })

  it('passes without a leader: the Lease does not exist yet, or was released', async () => {
    const nobody = ['ok no agent holds the Lease apisix/drain']
    expect(await found(asking(() => true, 404))).to.deep.equal(nobody)
    expect(await found(asking(() => true, 200, null))).to.deep.equal(nobody)
    expect(await found(asking(() => true, 200, ''))).to.deep.equal(nobody)
  })

  it('warns of each missing permission, and names the rule to add', async () => {
    const findings = await checkLease(
      asking(verb => verb === 'get'),
      PLACE
    )(AbortSignal.timeout(1000))
    expect(findings.map(({ level, what }) => `${level} ${what}`)).to.deep.equal([
      'warn we may not create the Lease apisix/drain, so every agent does all the work',
      'warn we may not update the Lease apisix/drain, so every agent does all the work'
    ])
    expect(findings[1]?.change).to.equal(
      'add to a Role in apisix: apiGroups ["coordination.k8s.io"], resources ["leases"], verbs ["update"]'
    )
    expect(LEASE_PERMISSIONS).to.have.length(3)
  })

  it('warns if it cannot ask, and reports that there is no election', async () => {
    const away = () => Promise.reject(new Error('ECONNREFUSED'))
    expect(await found(away)).to.deep.equal(['warn the Lease apisix/drain cannot be looked at: ECONNREFUSED'])
    const [finding] = await checkLease(away, undefined)(AbortSignal.timeout(1000))
    expect(finding).to.include({ level: 'ok', what: 'there is no election: every agent does all the work' })
  })
})
