import { expect } from 'chai'
import { LEASE_PERMISSIONS, PERMISSIONS } from '../../agent/doctor/rights/check-rbac.ts'
import { bare, kinds, only, render, WEBHOOK, type Manifest, type Values } from './helm.ts'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

const rulesOf = (manifest: Manifest) => manifest['rules'] as readonly Rule[]
const PODS: Rule = { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }
const READS: readonly Rule[] = [
  PODS,
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['services'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
  { apiGroups: ['apps'], resources: ['replicasets', 'deployments'], verbs: ['get'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] }
]
describe('chart RBAC', () => {
  const roles = (values: Values = {}) =>
    bare(values)
      .filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
      .map(manifest => ({
        kind: manifest.kind,
        namespace: manifest.metadata.namespace,
        name: manifest.metadata.name,
        rules: rulesOf(manifest)
      }))
  const lease = (name = 'apisix-drain'): readonly Rule[] => [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [name],
      verbs: ['get', 'update']
    }
  ]
  const leader = { kind: 'Role', namespace: 'apisix', name: 'apisix-drain-leader', rules: lease() }
  const cluster = { kind: 'ClusterRole', namespace: undefined, name: 'apisix-apisix-drain', rules: READS }

  it('grants these rules and no other', () => {
    expect(roles()).to.deep.equal([cluster, leader])
  })

  it('grants the one Lease in its namespace', () => {
    const elsewhere = roles({ 'config.leader.lease': 'ops/drainers' })
    expect(elsewhere).to.deep.equal([cluster, { ...leader, namespace: 'ops', rules: lease('drainers') }])
  })

  it('grants no ClusterRole if namespaces are named, and less for gateways than for pods', () => {
    const role = { ...cluster, kind: 'Role' }
    expect(roles({ 'config.kubernetes.namespaces': ['shop', 'billing', 'shop'] })).to.deep.equal([
      { ...role, namespace: 'shop' },
      { ...role, namespace: 'billing' },
      { ...role, namespace: 'apisix', name: 'apisix-apisix-drain-gateways', rules: [PODS] },
      leader
    ])
    expect(roles({ 'config.kubernetes.namespaces': ['apisix'] })).to.deep.equal([
      { ...role, namespace: 'apisix' },
      leader
    ])
  })

  it('grants nothing more to inject hooks', () => {
    for (const injecting of [{ 'injection.policy.enabled': true }, WEBHOOK])
      expect(roles(injecting)).to.deep.equal(roles())
  })

  it('grants exactly what the agent uses', () => {
    const flat = (rules: readonly Rule[]) =>
      rules.flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap(group =>
          resources.flatMap(resource => verbs.map(verb => `${verb} ${resource}.${group}`))
        )
      )
    const asks = (permissions: readonly { verb: string; resource: string; group: string }[]) =>
      permissions.map(({ verb, resource, group }) => `${verb} ${resource}.${group}`)
    const granted = (values?: Values) => flat(roles(values).flatMap(({ rules }) => rules))
    const always = [...PERMISSIONS, ...LEASE_PERMISSIONS]
    expect(granted()).to.have.members(asks(always))
  })

  it('binds every role to the one ServiceAccount', () => {
    for (const values of [{}, { 'config.kubernetes.namespaces': ['shop', 'billing'] }]) {
      const manifests = bare(values)
      const bindings = manifests.filter(({ kind }) => kind.endsWith('Binding'))
      expect(
        bindings.map(({ metadata: { namespace, name }, roleRef }) => ({ namespace, name, roleRef }))
      ).to.deep.equal(
        roles(values).map(({ kind, namespace, name }) => ({
          namespace,
          name,
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name }
        }))
      )
      for (const binding of bindings) {
        expect(binding['subjects']).to.deep.equal([
          { kind: 'ServiceAccount', name: 'apisix-drain', namespace: 'apisix' }
        ])
      }
    }
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
