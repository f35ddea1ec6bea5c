import { globSync, readFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brokenLinks } from '../../../scripts/docs/links.ts'
import { EVERY_MS, MOST_LINES } from '../../../agent/base/log.ts'
import { BODIES } from '../../../agent/hook/inject/server.ts'
import { hookPolicy, MOST_HOOKS } from '../../../agent/hook/listen.ts'
import { FOREIGN_HOLD_MS } from '../../../agent/start/assemble.ts'
import { spawnSync } from 'node:child_process'
import { steps } from '../../build/getting-started.ts'
import { ANSWERS } from '../../../agent/report/metrics/metric-registry.ts'
import { circles, importsOf } from '../../../scripts/rooms/imports.ts'
import { pluginProblems } from '../../../scripts/rooms/plugin-law.ts'

const decisions = globSync('docs/decisions/[0-9]*.md')
  .filter(file => !file.includes('0000-'))
  .map(file => ({ file, text: readFileSync(file, 'utf8') }))
const index = readFileSync('docs/decisions/README.md', 'utf8')

describe('docs/decisions', () => {
  it('each has a number, a status, a context, a decision and rejected alternatives', () => {
    expect(decisions).not.empty
    for (const { file, text } of decisions) {
      const number = /(\d{4})-/.exec(file)?.[1] ?? ''
      expect(text, file).match(new RegExp(`^# ${number} \\S.*\n\nStatus: (proposed|accepted|replaced)`))
      const parts = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title)
      expect(parts, file).eql(['Context', 'Decision', 'Rejected'])
    }
  })

  it('each has one line in the index, in their order, and a unique number', () => {
    const lines = [...index.matchAll(/^\| \[\d{4}\]\((\S+)\) /gm)].map(([, name]) => name)
    expect(lines).eql(decisions.map(({ file }) => file.slice('docs/decisions/'.length)).toSorted())
    expect(new Set(decisions.map(({ file }) => /\d{4}/.exec(file)?.[0])).size).equal(decisions.length)
  })
})

describe('links of the pages', () => {
  it('and of CONTRIBUTING to files, in code, lead somewhere', () => {
    const files = globSync('{agent,hook,model,plugin-config,sandbox,scripts,test}/**/*.{ts,go,lua}')
    const names = readFileSync('CONTRIBUTING.md', 'utf8').match(/(?<=`)[\w/.-]+\.(ts|go|lua)(?=`)/g) ?? []
    expect(names.length).above(20)
    expect(names.filter(name => !files.some(file => `/${file}`.endsWith(`/${name}`)))).eql([])
  })

  it('are reported if they lead nowhere', () => {
    const root = mkdtempSync(join(tmpdir(), 'apisix-drain-links-'))
    try {
      mkdirSync(join(root, 'docs'))
      writeFileSync(
        join(root, 'docs/a.md'),
        '# Here\n[1](#here) [2](#there) [3](../b.md#top) [4](c.md) [5](../../x)\n'
      )
      writeFileSync(join(root, 'b.md'), '# Bottom\n[6](docs/a.md#here) [7](docs)\n')
      expect(brokenLinks(root)).eql([
        'docs/a.md: #there: docs/a.md has no heading #there',
        'docs/a.md: ../b.md#top: b.md has no heading #top',
        'docs/a.md: c.md: there is no such file',
        'docs/a.md: ../../x: leads out of the project'
      ])
    } finally {
      rmSync(root, { recursive: true })
    }
  })
})

/** One row for each figure: a sentence made from the code must be in the row of its actor. */
describe('SECURITY.md', () => {
  const text = readFileSync('SECURITY.md', 'utf8')
  const MI = 2 ** 20
  const { maxHooks, maxHooksPerPod } = MOST_HOOKS
  const HOOKS = 'who reaches the hook port'
  const figures: readonly (readonly [actor: string, figure: string])[] = [
    [HOOKS, `${hookPolicy(maxHooks).connections.perAddress} connections from one address`],
    [HOOKS, `Hold ${maxHooksPerPod} hooks in one pod's name, ${maxHooks.toLocaleString('en')} in all`],
    [HOOKS, `${MOST_LINES} lines a minute of refusals`],
    ['who reaches the webhook port', `bodies of ${BODIES.each / MI} MiB, ${BODIES.all / MI} MiB at once`],
    ['a tenant with routes in APISIX', `hook for ${FOREIGN_HOLD_MS / 1000} s with an upstream`]
  ]
  for (const [actor, figure] of figures)
    it(`says what the code bounds for ${actor}: ${figure}`, () => {
      const row = text.split('\n').find(line => line.startsWith(`| ${actor} |`))
      expect(row).to.include(figure)
    })

  it('counts in minutes, and has 8 KB at most', () => {
    expect(EVERY_MS).to.equal(60_000)
    expect(Buffer.byteLength(text)).to.be.at.most(8192)
  })
})

const { PATH } = process.env
const page = readFileSync(new URL('../../../docs/first-drain.md', import.meta.url), 'utf8')

describe('getting started', () => {
  it('has five steps, each with its commands', () => {
    expect(steps().map(({ title }) => title.slice(0, 2))).to.deep.equal(['1.', '2.', '3.', '4.', '5.'])
    for (const { commands } of steps()) expect(commands).not.to.deep.equal([])
  })

  it('has a log with exactly these commands; UPDATE=1 npm run test:cluster writes it', () => {
    const shown = page
      .split(/^## /m)
      .slice(1)
      .map(part => [...part.matchAll(/^\$ ((?:.*\\\n)*.*)/gm)].map(([, command]) => command))
    expect(shown).to.deep.equal(steps().map(({ commands }) => commands))
  })

  // D11
  for (const written of ['edd1c9', '"2024"', "'0x1F'"])
    it(`reads the key of the Admin API from the values of APISIX: ${written}`, () => {
      const [command = ''] = steps()[1]?.commands ?? []
      const values = `apisix:\n  admin:\n    credentials:\n      admin: ${written}\n      viewer: other\n`
      const script = `helm() { printf %s "$VALUES"; }\nkubectl() { printf %s "\${!#}"; }\n${command}`
      const { stdout } = spawnSync('bash', ['-c', script], {
        encoding: 'utf8',
        env: { VALUES: values, PATH }
      })
      expect(stdout).to.equal(`--from-literal=admin-key=${written.replaceAll(/["']/g, '')}`)
    })
})

const ROOT = join(import.meta.dirname, '../../..')
const PAGES = [
  'README.md',
  'docs/*.md',
  'charts/apisix-drain/templates/*.{txt,tpl,yaml}',
  'test/kind/*.yaml',
  'sandbox/arms.ts'
]

/** Commands that call the agent, one line each. */
const calls = globSync(PAGES, { cwd: ROOT }).flatMap(page =>
  readFileSync(join(ROOT, page), 'utf8')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter(line => line.includes('curl -') && line.includes('/v1/prestop'))
    .map(line => ({ page, line: line.trim() }))
)

describe('the hooks in the documentation', () => {
  it('are found', () => {
    const pages = new Set(calls.map(({ page }) => page))
    expect([...pages]).to.include.members(['README.md', 'test/kind/web-drain.yaml'])
    expect(pages).to.include('charts/apisix-drain/templates/NOTES.txt')
  })

  for (const { page, line } of calls) {
    it(`${page}: names its pod, or shows its token, and uses no proxy: ${line.slice(0, 60)}`, () => {
      expect(line).to.match(/--noproxy "\*"/)
      expect(line).to.match(
        /[?]namespace=\$POD_NAMESPACE&pod=\$POD_NAME(?:&container=\w+)?(?:&sleep=5s)?"|curl -K - /
      )
    })
  }
})

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

/** The helper is a separate program. So no compiler reports that it lacks a new word of the agent's answers. */
describe('apisix-drain-hook', () => {
  it('has a case in its tests for each result of an answer', () => {
    const cases = read('hook/answer_test.go')
    expect(Object.keys(ANSWERS).filter(result => !cases.includes(`"result":"${result}"`))).to.deep.equal([])
  })
})

describe('the law of imports', () => {
  it('reads every import, including imports of types', () => {
    const source = [
      "import fs from 'node:fs'",
      "import { a } from '../drain/a.ts'",
      "import type { B } from './b.ts'",
      "import {\n  c,\n  type C\n} from '../c/c.ts'",
      "export { d } from './d.ts'",
      "import './e.ts'",
      "const f = await import('../f/f.ts')"
    ].join('\n')
    const found = ['/drain/a', '/plan/b', '/c/c', '/plan/d', '/plan/e', '/f/f'].map(
      path => `agent/rules${path}.ts`
    )
    expect(importsOf('agent/rules/plan/plan.ts', source)).eql(found)
  })

  it('finds a cycle of any length, once', () => {
    const imports = { a: ['b'], b: ['c', 'x'], c: ['a'], x: ['y'], y: [], z: ['z'] }
    expect(circles(new Map(Object.entries(imports)))).eql([['a', 'b', 'c'], ['z']])
    expect(circles(new Map(Object.entries({ a: ['b', 'c'], b: ['c'], c: [] })))).eql([])
  })
})

describe('the law of the plugin', () => {
  const law = { below: { holds: '', files: 'clock json' }, above: { holds: '', files: 'api' } }

  it('names each file that breaks it', () => {
    const sources = new Map([
      ['clock', 'local api = require("apisix.drain.api")'],
      ['api', ''],
      ['stray', 'local ffi = require("ffi")']
    ])
    expect(pluginProblems(sources, law)).eql([
      'stray.lua: in no room',
      'json.lua: in a room, and does not exist',
      'stray.lua uses ffi, outside of the room host',
      'clock.lua requires api.lua, of a room below its own'
    ])
    expect(pluginProblems(new Map([['a', '']]), { x: { holds: '', files: 'a a' } })).eql([
      'a.lua: in two rooms'
    ])
  })
})
