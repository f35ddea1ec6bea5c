import { expect } from 'chai'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../../agent/config/load.ts'
import { configRows } from '../../../agent/config/problems.ts'

/** The section and name of a setting. */
type Name = readonly [section: string, name: string]

const AGENT = join(import.meta.dirname, '../../../agent')
const read = (file: string) =>
  readFileSync(join(AGENT, file), 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*|^import .*/gm, '')

const has = (text: string, word: string) => new RegExp(`\\b${word}\\b`).test(text)

/** All top-level declarations of the files that use a configuration. */
const declarations = globSync('**/*.ts', { cwd: AGENT, exclude: ['config/**', 'dashboard/**'] }).flatMap(
  file => read(file).split(/^(?=\w)/m)
)

/** Whether `resolve` reads the setting: by path, in a pattern of its section, or with its whole section. */
function isTakenOver([section, name]: Name): boolean {
  const resolve = read('config/config.ts')
  const patterns = resolve.matchAll(new RegExp(`\\{([^{}]*)\\}: Settings[^)]*\\['${section}'\\]`, 'g'))
  return (
    has(resolve, `${section}\\.${name}`) ||
    [...patterns].some(([, names]) => has(names!, name)) ||
    new RegExp(`^ +${section},?$`, 'm').test(resolve)
  )
}

/** Whether a declaration outside `config/` uses the setting. If several sections have its name, it must name the section too. */
const isRead = ([section, name]: Name, all: readonly Name[]): boolean => {
  const isShared = all.some(other => other[1] === name && other[0] !== section)
  return declarations.some(
    text => has(text, name) && (!isShared || (has(text, section) && /config\b/i.test(text)))
  )
}

describe('settings', () => {
  const settings = configRows
    .filter(row => !row.section)
    .map(({ path }): Name => [path.at(-2) ?? '', path.at(-1) ?? ''])

  it('are all read from the file', () => {
    expect(settings.filter(setting => !isTakenOver(setting))).to.deep.equal([])
    expect(isTakenOver(['serve', 'timeout'])).to.equal(false)
    expect(isTakenOver(['drain', 'pageSize'])).to.equal(false)
  })

  it('are all used by the agent', () => {
    const names = [
      namesOf(everything('{ namespace: apisix }')),
      namesOf(everything('{ static: [{ name: a, host: h }] }'))
    ].flat()
    expect(names.length).to.be.at.least(settings.length - 10)
    expect(names.filter(name => !isRead(name, names))).to.deep.equal([])
    for (const unread of [
      ['kubernetes', 'timeoutMs'],
      ['drain', 'timeoutMs'],
      ['drain', 'maxHoldMs']
    ] as const)
      expect(isRead(unread, names), unread.join('.')).to.equal(false)
  })
})

/** Returns a configuration with all sections. */
function everything(gateways: string): object {
  const folder = mkdtempSync(join(tmpdir(), 'config-'))
  try {
    const [path, KEY] = [join(folder, 'config.yaml'), join(folder, 'key')]
    writeFileSync(KEY, 's3cret')
    writeFileSync(
      path,
      `
apisix:
  admin: { url: "http://apisix:9180", keyFile: ${KEY} }
  barrier: { tokenFile: ${KEY} }
  gateways: ${gateways}
serve: { dashboard: { enabled: true, tokenFile: ${KEY} } }
inject: { file: inject.yaml }
`
    )
    const loaded = loadConfig(path)
    if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
    return loaded.config
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Returns every setting of a configuration, with its section. A secret or a list is one setting. */
function namesOf(config: object, section = ''): Name[] {
  return Object.entries(config).flatMap(([name, value]: [string, unknown]): Name[] =>
    typeof value !== 'object' || value === null || Array.isArray(value) || 'read' in value
      ? [[section, name]]
      : namesOf(value, name)
  )
}
