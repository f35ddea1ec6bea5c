import { expect } from 'chai'
import { LEASE_PERMISSIONS, PERMISSIONS } from '../../agent/doctor/rights/check-rbac.ts'
import { bare, kinds, only, render } from './helm.ts'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

describe('chart RBAC', () => {
  it('grants exactly what the agent uses', () => {
    const rules = bare().flatMap(({ rules = [] }) => rules as readonly Rule[])
    const granted = rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap(group =>
        resources.flatMap(resource => verbs.map(verb => `${verb} ${resource}.${group}`))
      )
    )
    const asks = [...PERMISSIONS, ...LEASE_PERMISSIONS].map(
      ({ verb, resource, group }) => `${verb} ${resource}.${group}`
    )
    expect(granted).to.have.members(asks)
  })

  it('mounts a token only into the agents', () => {
    const manifests = bare()
    expect(only(manifests, 'ServiceAccount')['automountServiceAccountToken']).to.equal(false)
    expect(only(manifests, 'Deployment')).to.have.nested.property(
      'spec.template.spec.automountServiceAccountToken',
      true
    )
    expect(only(manifests, 'Pod')).to.have.nested.property('spec.automountServiceAccountToken', false)
  })

  it('uses an existing account with existing rights', () => {
    const manifests = render({}, 'single-values.yaml')
    expect(kinds(manifests).filter(kind => /Role|Account/.test(kind))).to.deep.equal([])
    expect(only(manifests, 'Deployment')).to.have.nested.property(
      'spec.template.spec.serviceAccountName',
      'drainer'
    )
  })
})
