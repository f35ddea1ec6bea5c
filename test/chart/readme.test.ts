import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { format, resolveConfig } from 'prettier'
import { CHART } from './helm.ts'
import { toolPath } from './tools.ts'

describe('chart README', () => {
  const path = join(CHART, 'README.md')

  it('is the output of helm-docs for values.yaml; UPDATE=1 writes it', async () => {
    const args = ['--chart-search-root', CHART, '--dry-run', '--sort-values-order=file']
    const { status, stdout, stderr } = spawnSync(toolPath('helm-docs'), args, {
      encoding: 'utf8',
      timeout: 60_000
    })
    // The program always exits with 0, so the test also checks its output.
    expect({ status, stderr }).to.have.property('status', 0)
    expect(stdout, stderr).to.include('## Values')
    const wanted = await format(stdout, { ...(await resolveConfig(path)), filepath: path })
    if (process.env['UPDATE']) writeFileSync(path, wanted)
    expect(readFileSync(path, 'utf8')).to.equal(wanted)
  })

  it('explains every value', () => {
    const [, table = ''] = readFileSync(path, 'utf8').split('## Values')
    const rows = [...table.matchAll(/^\| (\S+) +\|.*\| +(\S?.*?) *\|$/gm)].slice(2)
    expect(rows).to.have.length.above(50)
    for (const [row, name, words = ''] of rows) expect(words, `${name}\n${row}`).to.match(/^\S.*\.$/)
  })

  it('has no value that no template reads', () => {
    const names = readFileSync(join(CHART, 'values.yaml'), 'utf8').matchAll(/^([a-zA-Z]+):/gm)
    const folder = join(CHART, 'templates')
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file =>
      /\.(yaml|tpl)$/.test(file)
    )
    const templates = files.map(file => readFileSync(join(folder, file), 'utf8')).join('\n')
    for (const [, name = ''] of names) expect(templates, name).to.include(`.Values.${name}`)
  })
})
