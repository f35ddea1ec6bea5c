import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { readDockerfile } from './dockerfile.ts'
import { helm } from './helm.ts'
import { pluginFiles } from './plugin-files.ts'
import { packageChart } from '../../scripts/release.ts'
import { differences, versions } from '../../scripts/version.ts'
import { toolPath } from './tools.ts'

/** From this Kubernetes on hooks are injected by default. */
const ON = '--kube-version=1.36.0'
const ROOT = join(import.meta.dirname, '../..')
const WORKFLOWS = join(ROOT, '.github/workflows')
const files = readdirSync(WORKFLOWS).map(name => join(WORKFLOWS, name))

describe('release', () => {
  it('has one version in all parts, and names a part that differs', () => {
    expect(differences(versions())).to.deep.equal([])
    const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
    const wrong = versions(path => (path.endsWith('.lua') ? 'VERSION = "9.9.9",' : read(path)))
    expect(differences(wrong)).to.deep.equal([
      `plugin-config/apisix/drain/runtime.lua: has 9.9.9, and not ${wrong[0]?.version}`
    ])
    const none = versions(path => (path.endsWith('Chart.yaml') ? '' : read(path)))
    expect(differences(none)).to.have.length(2)
    const two = versions(path => `${read(path)}${path === 'README.md' ? 'apisix-drain:0.0.1' : ''}`)
    expect(differences(two)).to.deep.equal([
      `README.md: has ${two[0]?.version} and 0.0.1, and not ${two[0]?.version}`
    ])
    expect(differences(versions(), '9.9.9')).to.have.length(versions().length)
  })

  it('has workflows that actionlint accepts', () => {
    const { status, stdout, error } = spawnSync(toolPath('actionlint'), ['-no-color', ...files], {
      encoding: 'utf8'
    })
    expect(error).to.equal(undefined)
    expect(stdout).to.equal('')
    expect(status).to.equal(0)
  })

  it('names every base image by digest', () => {
    for (const file of ['Dockerfile', 'hook/Dockerfile']) {
      const bases = readDockerfile(join(ROOT, file)).filter(({ name }) => name === 'FROM')
      for (const { text } of bases) expect(text, file).to.match(/@sha256:[0-9a-f]{64}( AS |$)|^scratch$/)
    }
  })

  it('uses only actions of one commit, and gives the token only what a job needs', () => {
    for (const file of files) {
      const text = readFileSync(file, 'utf8')
      for (const [, used = ''] of text.matchAll(/uses: (\S+)/g))
        expect(used).to.match(/^[\w/-]+@[0-9a-f]{40}$/)
      const { permissions } = parse(text) as { permissions: unknown }
      expect(permissions, file).to.deep.equal({ contents: 'read' })
    }
  })

  it('packages a chart that renders, with the images of the registry', function () {
    this.timeout(120_000)
    const folder = mkdtempSync(join(tmpdir(), 'release-'))
    try {
      const repository = 'https://git.example/someone/apisix-drain'
      packageChart({ registry: 'ghcr.io/someone', repository, helm: toolPath('helm'), folder })
      const version = versions()[0]?.version
      expect(readdirSync(folder)).to.deep.equal([`apisix-drain-${version}.tgz`])
      const file = join(folder, `apisix-drain-${version}.tgz`)
      const { ok, stdout, stderr } = helm('template', 'apisix-drain', file, '-n=apisix', ON)
      // Without a word of the link to the plugin: the package has the files.
      expect({ ok, stderr }).to.deep.equal({ ok: true, stderr: '' })
      expect(stdout).to.include(`image: "ghcr.io/someone/apisix-drain:${version}"`)
      expect(stdout).to.include(`ghcr.io/someone/apisix-drain-hook:${version}`)
      const made = helm('template', 'apisix-drain', file, '--show-only=templates/plugin.yaml', ON)
      expect(parse(made.stdout)).to.have.deep.property('data', pluginFiles())
      const icon = readFileSync(join(ROOT, 'agent/dashboard/icon.svg'), 'base64')
      const places = { home: repository, sources: [repository], icon: `data:image/svg+xml;base64,${icon}` }
      expect(parse(helm('show', 'chart', file).stdout)).to.deep.include(places)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
