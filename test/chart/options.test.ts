import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { bare, kinds, only, render, type Manifest } from './helm.ts'
import { firstContainer, podOf } from './pods.ts'

describe('chart options', () => {
  it('renders these objects besides plugin and injection, and the optional ones only on request', () => {
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
    expect(kinds(bare())).to.deep.equal(basic)
    const more = [
      'ConfigMap',
      'ConfigMap',
      'FlowSchema',
      'Ingress',
      'MutatingAdmissionPolicy',
      'MutatingAdmissionPolicyBinding',
      'MutatingAdmissionPolicyBinding',
      'NetworkPolicy',
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

  it('shows the page by an Ingress', () => {
    const values = { 'ingress.enabled': true, 'ingress.host': 'drain.example' }
    const backend = (more = {}) => {
      const [rule] = (
        only(bare({ ...values, ...more }), 'Ingress')['spec'] as {
          rules: { host: string; http: { paths: { backend: object }[] } }[]
        }
      ).rules
      return { host: rule?.host, ...rule?.http.paths[0]?.backend }
    }
    const service = { name: 'apisix-drain', port: { name: 'page' } }
    expect(backend()).to.deep.equal({ host: 'drain.example', service })
    const oneListener = { service: { ...service, port: { name: 'http' } } }
    expect(backend({ 'config.serve.pagePort': null })).to.deep.include(oneListener)
    expect(() => bare({ 'ingress.enabled': true })).to.throw(/ingress\.host: the name of the page is missing/)
  })

  // What they open otherwise is in grants.yaml.
  describe('network policies', () => {
    const policy = (name: string, manifests: readonly Manifest[]) =>
      manifests.find(
        ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === `apisix-drain-${name}`
      )?.['spec']
    const enabled = { 'networkPolicy.enabled': true }

    it('admit hooks from the configured sources', () => {
      const hooksFrom = [{ namespaceSelector: { matchLabels: { hooks: 'yes' } } }]
      expect(policy('hooks', bare({ ...enabled, 'networkPolicy.hooksFrom': hooksFrom })))
        .to.have.nested.property('ingress[0].from')
        .that.deep.equals(hooksFrom)
    })

    it('admit the configured sources to the dashboard and the metrics', () => {
      const page = (values: Record<string, unknown>) => policy('page', bare({ ...enabled, ...values }))
      const ports = [{ port: 'page', protocol: 'TCP' }]
      const pageFrom = [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }]
      const ingress = [{ ports, from: pageFrom }]
      expect(page({ 'networkPolicy.pageFrom': pageFrom })).to.deep.include({ ingress })
      expect(page({ 'networkPolicy.pageFrom': [] })).to.deep.include({ ingress: [{ ports }] })
      expect(page({ 'config.serve.pagePort': null })).to.equal(undefined)
    })

    it('open the ports that the configuration uses', () => {
      const ports = (values: Record<string, unknown>) =>
        (
          policy('reach', bare({ ...enabled, ...values })) as { egress: { ports: { port: number }[] }[] }
        ).egress[2]?.ports.map(({ port }) => port)
      expect(ports({ 'config.apisix.barrier': { port: 9999 } })).to.deep.equal([9180, 9090, 9999])
      expect(ports({ 'config.apisix.control': { enabled: false } })).to.deep.equal([9180])
    })
  })

  it('gives the agents their own share of the API server for their calls', () => {
    const flow = only(bare({ 'flowSchema.enabled': true }), 'FlowSchema')
    expect(flow).to.have.nested.property('spec.rules[0].subjects[0].serviceAccount').that.deep.equals({
      name: 'apisix-drain',
      namespace: 'apisix'
    })
  })

  describe('helm test', () => {
    it('leaves nothing behind, whatever its result', () => {
      expect(only(bare(), 'Pod').metadata.annotations).to.deep.include({
        'helm.sh/hook': 'test',
        'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded,hook-failed'
      })
    })

    it('waits for an agent to be ready, and prints the answer', async () => {
      const { command = [], args, env } = firstContainer(podOf(only(bare(), 'Pod')))
      expect(env).to.deep.equal([{ name: 'AGENT', value: 'http://apisix-drain.apisix:8080' }])
      const [program, ...options] = command
      expect(program).to.equal('node')

      const asked: (string | undefined)[] = []
      const server = createServer(({ url }, answer) => {
        asked.push(url)
        answer.writeHead(asked.length < 3 ? 503 : 200).end('{"ready":"soon"}')
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      try {
        const { port } = server.address() as AddressInfo
        const agent = `http://127.0.0.1:${port}`
        const child = spawn(process.execPath, [...options, ...args], { env: { AGENT: agent } })
        let said = ''
        child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
        const [code] = (await once(child, 'close')) as [number]
        expect({ code, said }).to.deep.equal({ code: 0, said: `${agent}/readyz: 200 {"ready":"soon"}\n` })
        expect(asked).to.deep.equal(['/readyz', '/readyz', '/readyz'])
      } finally {
        server.close()
      }
    })
  })
})
