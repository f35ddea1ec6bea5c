import { expect } from 'chai'
import { spawnSync } from 'node:child_process'
import { bare, kinds, only, tryTemplate, WEBHOOK } from './helm.ts'
import { schemaFolders } from './schemas.ts'
import { toolPath } from './tools.ts'

const POLICY = { 'injection.policy.enabled': true }

describe('chart injection', () => {
  it('is by policy where Kubernetes has one, unless it is off or the agent is restricted to namespaces', () => {
    const mutating = (values = {}, version?: string) =>
      tryTemplate(values, undefined, version).stdout.match(/^kind: Mutating.*/gm)?.length ?? 0
    expect(mutating()).to.equal(3)
    expect(mutating({ 'injection.policy.enabled': false })).to.equal(0)
    expect(mutating({ 'config.kubernetes.namespaces': ['shop'] })).to.equal(0)
    // Before, it is a webhook. `helm template` makes no certificate for it that would be another one each time.
    expect(mutating({}, '1.35.4')).to.equal(0)
    expect(mutating({ 'tls.webhook.issuerRef': { name: 'mine' } }, '1.35.4')).to.equal(1)
  })

  it('by policy adds a policy, its bindings, and nothing else: no rights, no container', () => {
    const [plain, injecting] = [bare(), bare(POLICY)]
    const added = injecting.filter(({ kind }) => kind.startsWith('Mutating'))
    expect(kinds(added)).to.deep.equal([
      'MutatingAdmissionPolicy',
      'MutatingAdmissionPolicyBinding',
      'MutatingAdmissionPolicyBinding'
    ])
    expect(injecting.filter(manifest => !added.includes(manifest))).to.deep.equal(plain)
    const names = added.map(({ metadata }) => metadata.name)
    expect(names).to.have.members([
      'apisix-apisix-drain',
      'apisix-apisix-drain-namespaces',
      'apisix-apisix-drain-pods'
    ])
  })

  it('by policy admits pods when the policy fails', () => {
    const policy = bare(POLICY).find(({ kind }) => kind === 'MutatingAdmissionPolicy')
    expect(policy).to.have.nested.property('spec.failurePolicy', 'Ignore')
  })

  it('by policy is refused on a Kubernetes without such policies', () => {
    const { ok, stderr } = tryTemplate({ ...POLICY }, undefined, '1.35.4')
    expect(ok).to.equal(false)
    expect(stderr).to.include('MutatingAdmissionPolicy is in Kubernetes from 1.36 on')
  })

  it('by webhook admits pods when it fails, waits for 3 s, and handles only pods that ask for it', () => {
    const { webhooks } = only(bare(WEBHOOK), 'MutatingWebhookConfiguration') as unknown as {
      webhooks: object[]
    }
    expect(webhooks).to.have.length(2)
    for (const webhook of webhooks) {
      expect(webhook).to.include({
        failurePolicy: 'Ignore',
        timeoutSeconds: 3,
        sideEffects: 'None',
        reinvocationPolicy: 'IfNeeded'
      })
      const text = JSON.stringify(webhook)
      expect(text).to.include('"values":["kube-system","apisix"]')
      expect(text).to.include('"matchLabels":{"apisix-drain.io/inject":"true"}')
    }
  })

  it('by webhook is not rendered together with the policy', () => {
    const { ok, stderr } = tryTemplate({ ...POLICY, ...WEBHOOK })
    expect(ok).to.equal(false)
    expect(stderr).to.include('enable one of the two')
  })

  it('by webhook matches the API schema, field by field, on old and new versions', () => {
    for (const kubernetes of schemaFolders().kubernetes) {
      const values = { ...WEBHOOK, 'networkPolicy.enabled': true }
      const location = `${kubernetes}/{{.ResourceKind}}{{.KindSuffix}}.json`
      const conform = spawnSync(toolPath('kubeconform'), ['-strict', '-schema-location', location], {
        input: tryTemplate(values).stdout,
        encoding: 'utf8',
        timeout: 60_000
      })
      expect(conform.stdout + conform.stderr).to.equal('')
    }
  }).timeout(10 * 60_000)

  for (const hook of ['helper', 'curl']) {
    it(`by policy matches the API schema, field by field: ${hook}`, () => {
      const [, current = ''] = schemaFolders().kubernetes
      const { stdout } = tryTemplate({ ...POLICY, 'injection.hook': hook })
      const location = `${current}/{{.ResourceKind}}{{.KindSuffix}}.json`
      const conform = spawnSync(toolPath('kubeconform'), ['-strict', '-schema-location', location], {
        input: stdout,
        encoding: 'utf8',
        timeout: 60_000
      })
      expect(conform.stdout + conform.stderr).to.equal('')
    }).timeout(10 * 60_000)
  }
})
