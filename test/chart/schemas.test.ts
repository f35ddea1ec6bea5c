import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import { CI, tryTemplate } from './helm.ts'
import { schemaFolders } from './schemas.ts'
import { toolPath } from './tools.ts'

interface Verdict {
  readonly resources: readonly { readonly kind: string; readonly status: string; readonly msg: string }[]
  readonly summary: Readonly<Record<'valid' | 'invalid' | 'errors' | 'skipped', number>>
}

describe('chart against the API', () => {
  let folders: ReturnType<typeof schemaFolders>
  before(function () {
    // The first time, the API's source is downloaded and its descriptions are rewritten.
    this.timeout(10 * 60_000)
    folders = schemaFolders()
  })

  function conform(manifests: string, kubernetes: string): Verdict {
    const locations = [kubernetes, folders.custom].flatMap(folder => [
      '-schema-location',
      `${folder}/{{.ResourceKind}}{{.KindSuffix}}.json`
    ])
    const args = ['-strict', '-summary', '-output', 'json', '-verbose', ...locations]
    const { stdout, stderr } = spawnSync(toolPath('kubeconform'), args, {
      input: manifests,
      encoding: 'utf8',
      timeout: 60_000
    })
    if (stdout === '') throw new Error(stderr)
    return JSON.parse(stdout) as Verdict
  }

  it('renders only objects that match the schemas of Kubernetes and of custom kinds, field by field', () => {
    for (const kubernetes of folders.kubernetes) {
      for (const file of readdirSync(CI)) {
        const { stdout } = tryTemplate({}, file, /\d+\.\d+\.\d+/.exec(kubernetes)?.[0])
        const { resources, summary } = conform(stdout, kubernetes)
        const bad = resources.filter(({ status }) => status !== 'statusValid')
        expect(bad, `${file} ${kubernetes}`).to.deep.equal([])
        expect(summary.valid, file).to.be.above(3)
      }
    }
  }).timeout(120_000)

  it('detects a wrong field, a wrong type and an unknown kind', () => {
    const [, current = ''] = folders.kubernetes
    const { stdout } = tryTemplate({}, 'everything-values.yaml')
    const wrong = [
      ['maxUnavailable: 0', 'maxUnavailible: 0'],
      ['replicas: 2', 'replicas: "2"'],
      ['kind: FlowSchema', 'kind: FlowScheme'],
      ['scrapeTimeout: 10s', 'scrapeTimeOut: 10s'],
      ['defaultMode: 288', 'defaultMode: a']
    ] as const
    for (const [from, to] of wrong) {
      expect(stdout).to.include(from)
      const { summary } = conform(stdout.replace(from, to), current)
      expect(summary.invalid + summary.errors, to).to.equal(1)
    }
  }).timeout(120_000)
})
