import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import { CHART, CI, helm, tryTemplate, type Values } from './helm.ts'

describe('chart values', () => {
  it('passes helm lint, with warnings as errors and nothing that it recommends', () => {
    for (const file of readdirSync(CI)) {
      const { ok, stdout } = helm('lint', '--strict', '--kube-version=1.36.0', `-f=${CI}/${file}`, CHART)
      expect(ok, `${file}\n${stdout}`).to.equal(true)
      expect(stdout).not.to.include('[INFO]')
    }
  })

  const refused: readonly (readonly [string, Values, RegExp])[] = [
    ['an unknown key', { barrierTLS: { enabled: false } }, /at '': .* 'barrierTLS' not allowed/],
    [
      'an unknown key deeper down',
      { 'service.type': 'NodePort' },
      /'\/service': additional properties 'type'/
    ],
    ['an unknown setting of the agent', { 'config.apisix.bariier': {} }, /'\/config\/apisix': .*'bariier'/],
    ['a wrong type', { replicaCount: 'two' }, /'\/replicaCount': got string, want integer/],
    [
      'a duration without its unit',
      { 'config.drain.settle': 15 },
      /'\/config\/drain\/settle': got number, want string/
    ],
    [
      'a duration in no unit',
      { 'config.drain.settle': '15' },
      /'\/config\/drain\/settle': '15' does not match/
    ],
    [
      'a port beyond the last',
      { 'service.port': 65536 },
      /'\/service\/port': maximum: got 65,?536, want 65,?535/
    ],
    [
      'a missing Secret',
      { 'secrets.adminKey.existingSecret': '' },
      /adminKey\/existingSecret': '' does not match/
    ],
    [
      'a missing key of a Secret',
      { 'secrets.barrierToken': { existingSecret: 'x', key: null } },
      /'\/secrets\/barrierToken': missing property 'key'/
    ],
    ['no evidence', { 'plugin.enabled': false, 'config.apisix.admin': null }, /admin: is needed without/],
    [
      'a URL without its scheme',
      { 'config.apisix.admin.url': 'apisix:9180' },
      /'\/config\/apisix\/admin\/url'/
    ],
    [
      'a password in the URL',
      { 'config.apisix.admin.url': 'http://a:b@apisix:9180' },
      /'\/config\/apisix\/admin\/url'/
    ],
    [
      'a secret in the configuration',
      { 'config.apisix.admin.key': 'edd1c9' },
      /additional properties 'key' not allowed/
    ],
    [
      'what the chart decides itself',
      { 'config.apisix.admin.keyFile': '/x' },
      /additional properties 'keyFile' not allowed/
    ],
    [
      'a container that may write',
      { securityContext: { readOnlyRootFilesystem: false } },
      /additional properties 'securityContext'/
    ],
    [
      'no ServiceAccount at all',
      { 'serviceAccount.create': false },
      /serviceAccount\.name: must name an existing ServiceAccount/
    ],
    [
      'a grace that ends before the last hook',
      { 'config.serve.shutdownTimeout': '1.5m' },
      /terminationGracePeriodSeconds: 45 is too short; .*shutdownTimeout \(90 s\).* need 104/
    ]
  ]
  for (const [what, values, message] of refused) {
    it(`refuses ${what}, and names the place`, () => {
      const { ok, stdout, stderr } = tryTemplate(values)
      expect({ ok, stdout }).to.deep.equal({ ok: false, stdout: '' })
      expect(stderr).to.match(message)
    })
  }

  it('accepts a grace that is just long enough', () => {
    const values = {
      'config.serve.shutdownTimeout': '90500ms',
      preStopSeconds: 0,
      terminationGracePeriodSeconds: 100
    }
    expect(tryTemplate(values)).to.include({ ok: true })
    expect(tryTemplate({ ...values, terminationGracePeriodSeconds: 99 })).to.include({ ok: false })
  })

  it('can be a subchart', () => {
    expect(tryTemplate({ global: { imageRegistry: 'x' } })).to.include({ ok: true })
  })
})
