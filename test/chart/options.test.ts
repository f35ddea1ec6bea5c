import { expect } from 'chai'
import { kinds, only, render, type Manifest } from './helm.ts'

describe('chart options', () => {
  it('makes these objects, and the optional ones only when told', () => {
    const basic = [
      'ClusterRole',
      'ClusterRoleBinding',
      'ConfigMap',
      'Deployment',
      'Pod',
      'PodDisruptionBudget',
      'Role',
      'RoleBinding',
      'Service',
      'ServiceAccount'
    ]
    expect(kinds(render())).to.deep.equal(basic)
    const more = [
      'ConfigMap',
      'FlowSchema',
      'NetworkPolicy',
      'NetworkPolicy',
      'PrometheusRule',
      'ServiceMonitor'
    ]
    expect(kinds(render({}, 'everything-values.yaml'))).to.deep.equal([...basic, ...more].toSorted())
    expect(kinds(render({}, 'single-values.yaml'))).to.deep.equal([
      'ConfigMap',
      'Deployment',
      'Pod',
      'Service'
    ])
  })

  describe('network policies', () => {
    const policy = (name: string, manifests: readonly Manifest[]) =>
      manifests.find(
        ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === `apisix-drain-${name}`
      )?.['spec']
    const enabled = { 'networkPolicy.enabled': true }
    const tcp = (port: number) => ({ port, protocol: 'TCP' })

    it('let hooks in from everywhere, or from where it is said', () => {
      expect(policy('hooks', render(enabled))).to.deep.include({
        policyTypes: ['Ingress'],
        ingress: [{ ports: [{ port: 'http', protocol: 'TCP' }] }]
      })
      const hooksFrom = [{ namespaceSelector: { matchLabels: { hooks: 'yes' } } }]
      expect(policy('hooks', render({ ...enabled, 'networkPolicy.hooksFrom': hooksFrom })))
        .to.have.nested.property('ingress[0].from')
        .that.deep.equals(hooksFrom)
    })

    it('let the agent out to DNS, the API server and the gateways, and nowhere else', () => {
      const apisix = { matchLabels: { 'app.kubernetes.io/name': 'apisix' } }
      expect(policy('reach', render(enabled))).to.deep.include({
        policyTypes: ['Egress'],
        egress: [
          { ports: [{ port: 53, protocol: 'UDP' }, tcp(53)] },
          { ports: [tcp(443), tcp(6443)] },
          { ports: [tcp(9180), tcp(9090)], to: [{ namespaceSelector: {}, podSelector: apisix }] }
        ]
      })
    })

    it('open the ports that the configuration uses', () => {
      const ports = (values: Record<string, unknown>) =>
        (
          policy('reach', render({ ...enabled, ...values })) as { egress: { ports: { port: number }[] }[] }
        ).egress[2]?.ports.map(({ port }) => port)
      expect(ports({ 'config.apisix.barrier': { port: 9999 } })).to.deep.equal([9180, 9090, 9999])
      expect(ports({ 'config.apisix.control': { enabled: false } })).to.deep.equal([9180])
    })
  })

  it('gives the agents a share of the API server for what they do there', () => {
    const flow = only(render({ 'flowSchema.enabled': true }), 'FlowSchema')
    expect(flow).to.have.nested.property('spec.rules[0].subjects[0].serviceAccount').that.deep.equals({
      name: 'apisix-drain',
      namespace: 'apisix'
    })
  })

  it('leaves nothing of its test behind, whatever came of it', () => {
    const pod = only(render(), 'Pod')
    expect(pod.metadata.annotations).to.deep.include({
      'helm.sh/hook': 'test',
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded,hook-failed'
    })
  })
})
