import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { format, resolveConfig } from 'prettier'
import { CHART } from './helm.ts'
import { toolPath } from './tools.ts'

describe('chart README', () => {
  const path = join(CHART, 'README.md')

  it('is what helm-docs makes of values.yaml, every value being explained; UPDATE=1 writes it', async () => {
    // Strict: a value without a comment is an error. The agent's configuration is explained as a whole.
    const strict = [
      '--documentation-strict-mode',
      '--documentation-strict-ignore-absent=config.apisix,config.apisix.admin'
    ]
    const args = ['--chart-search-root', CHART, '--dry-run', '--sort-values-order=file', ...strict]
    const { status, stdout, stderr } = spawnSync(toolPath('helm-docs'), args, {
      encoding: 'utf8',
      timeout: 60_000
    })
    expect(status, stderr).to.equal(0)
    const wanted = await format(stdout, { ...(await resolveConfig(path)), filepath: path })
    if (process.env['UPDATE']) writeFileSync(path, wanted)
    expect(readFileSync(path, 'utf8')).to.equal(wanted)
  })

  it('uses every value: none is there that no template reads', () => {
    const names = readFileSync(join(CHART, 'values.yaml'), 'utf8').matchAll(/^([a-zA-Z]+):/gm)
    const folder = join(CHART, 'templates')
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file =>
      /\.(yaml|tpl)$/.test(file)
    )
    const templates = files.map(file => readFileSync(join(folder, file), 'utf8')).join('\n')
    for (const [, name = ''] of names) expect(templates, name).to.include(`.Values.${name}`)
  })
})
