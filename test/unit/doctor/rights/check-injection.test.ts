import { expect } from 'chai'
import type { Wanted } from '../../../../agent/doctor/rights/check-kubernetes.ts'
import { checkInjection, INJECTION_PERMISSIONS } from '../../../../agent/doctor/rights/check-injection.ts'
import type { AskKubernetes } from '../../../../agent/doctor/rights/check-kubernetes.ts'
import type { InjectSettings } from '../../../../agent/hook/inject/settings.ts'

const SETTINGS: InjectSettings = {
  host: 'apisix-drain.apisix.svc',
  namespace: 'apisix',
  secret: 'certificate',
  configuration: 'hooks',
  hook: 'curl',
  url: 'http://a:1/v1/prestop',
  volumes: []
}

describe('doctor: injection', () => {
  const asked: Wanted[] = []
  const asking =
    (allows: (wanted: Wanted) => boolean): AskKubernetes =>
    async (_method, _path, body) => {
      const { spec } = body as { spec: { resourceAttributes: Wanted } }
      asked.push(spec.resourceAttributes)
      return { status: 201, json: { status: { allowed: allows(spec.resourceAttributes) } } }
    }
  const find = (ask: AskKubernetes, read = () => SETTINGS) =>
    checkInjection(ask, read)(AbortSignal.timeout(1000))

  beforeEach(() => asked.splice(0))

  it('passes if the two objects may be read and written, and asks for no others', async () => {
    const [finding, ...more] = await find(asking(() => true))
    expect(more).to.deep.equal([])
    expect(finding).to.include({ level: 'ok', what: 'the webhook may keep its certificate' })
    const group = 'admissionregistration.k8s.io'
    const configuration = { group, resource: 'mutatingwebhookconfigurations', name: 'hooks' }
    const secret = { group: '', resource: 'secrets', namespace: 'apisix', name: 'certificate' }
    expect(asked).to.have.deep.members(
      [secret, configuration].flatMap(what => [
        { ...what, verb: 'get' },
        { ...what, verb: 'update' }
      ])
    )
    expect(asked).to.have.length(INJECTION_PERMISSIONS.length)
  })

  it('warns of each missing permission, and names the rule to add', async () => {
    const findings = await find(asking(({ verb }) => verb === 'get'))
    expect(findings.map(({ level, what, change }) => [level, what, change])).to.deep.equal([
      [
        'warn',
        'we may not update certificate of secrets, so pods will be made without the hook',
        'add to a Role in apisix: apiGroups [""], resources ["secrets"], resourceNames ["certificate"], verbs ["update"]'
      ],
      [
        'warn',
        'we may not update hooks of mutatingwebhookconfigurations, so pods will be made without the hook',
        'add to a ClusterRole: apiGroups ["admissionregistration.k8s.io"], resources ["mutatingwebhookconfigurations"], resourceNames ["hooks"], verbs ["update"]'
      ]
    ])
  })

  it('warns if it cannot ask, or cannot read the chart’s objects', async () => {
    const whatOf = async (...args: Parameters<typeof find>) => (await find(...args))[0]?.what
    expect(await whatOf(() => Promise.reject(new Error('ECONNREFUSED')))).to.equal(
      'the webhook cannot be looked at: ECONNREFUSED'
    )
    const unread = () => {
      throw new Error('no such file')
    }
    expect(
      await whatOf(
        asking(() => true),
        unread
      )
    ).to.equal('the webhook cannot be looked at: no such file')
  })
})
