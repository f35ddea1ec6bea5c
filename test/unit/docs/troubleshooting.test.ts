import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { GRADES } from '../../../agent/rules/drain/drain.ts'
import { createLog } from '../../../agent/base/log.ts'
import { ERRORS } from '../../../agent/base/errors.ts'
import { REFUSALS } from '../../../agent/round/hold/refusal.ts'
import { inCalls, quoted, sentences, sources, tells, type Message } from './messages.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const page = read('docs/troubleshooting.md').replaceAll('\\|', '|')

const SERVE = 'agent/hook/{identify,query,hook-slots}.ts'
const GO = /\b(?:say|complain|Errorf|New|Sprintf|fallBack)\((?:ctx, )?"((?:[^"\\]|\\.)*)"/g
const CHART = /\bfail (?:\(printf )?"((?:[^"\\]|\\.)*)"/g
/** Matches the first literal of a line of Lua, unless a comment begins before it. */
const LUA = /^(?:(?!--).)*?"((?:[^"\\\n]|\\.)*)"/gm
const PLUGIN = 'plugin-config/apisix/drain/{workers,install,token,settings,fetch,runtime,api,l4}.lua'

const MESSAGES: Readonly<Record<string, readonly Message[]>> = {
  'refusals of hooks': [
    ...sentences(SERVE, 'agent/round/vouch.ts'),
    ...inCalls(/\brefuse\(/g, 0, 'agent/**/*.ts'),
    ...inCalls(/\bnew CannotVouch\(/g, 0, 'agent/**/*.ts')
  ],
  'reasons in an answer': sentences(
    'agent/{gateway/barrier/identity,rules/proof/{gateway-proof,proof}}.ts',
    'agent/rules/drain/{answer,eligible,budget}.ts'
  ),
  'warnings and errors of the log': inCalls(/\blog\.(?:warn|error|fatal)\(/g, -1, 'agent/**/*.ts'),
  'findings of doctor': inCalls(
    /\b(?:warn|fail|problem|fail : warn\)|warn\))\(/g,
    0,
    'agent/doctor/{doctor,checks/check-{clocks,gateways,holders,hooks,pods},rights/check-{injection,kubernetes,lease,rbac}}.ts'
  ),
  'mistakes in a hook': sentences('agent/doctor/checks/hook-problems.ts'),
  'failed connections': sentences('agent/base/network.ts'),
  'reasons not to start': inCalls(
    /\bnew Error\(/g,
    0,
    'agent/kubernetes/{transport/{kubeconfig,account,session},reflect/list}.ts',
    'agent/config/secret.ts'
  ),
  'reasons not to sync': sentences('agent/rules/members/{claim,settle}.ts', 'agent/upkeep/sync/sync.ts'),
  'reasons why the state of another agent is missing': sentences('agent/report/peers/{peer,agents}.ts'),
  'messages of the plugin': quoted(LUA, PLUGIN).filter(({ parts }) => !parts[0]?.startsWith('GET ')),
  'lines of the helper': quoted(GO, 'hook/*.go'),
  'refusals of the chart': quoted(CHART, 'charts/apisix-drain/templates/*.{yaml,tpl}')
}

describe('docs/troubleshooting.md', () => {
  for (const [what, messages] of Object.entries(MESSAGES)) {
    it(`has all ${what}`, () => {
      expect(messages, 'nothing was found in the source').not.empty
      const missing = messages.filter(message => !tells(page, message))
      expect(missing.map(({ file, parts }) => `${file}: ${parts.join('…')}`)).eql([])
    })
  }

  it('has each refusal under its status', () => {
    for (const [code, status] of Object.entries(REFUSALS)) expect(page).include(`### ${status} \`${code}\``)
  })

  it('has each alert of the chart', () => {
    const names = [...read('charts/apisix-drain/templates/_alerts.tpl').matchAll(/^- alert: (\w+)$/gm)]
    expect(names).not.empty
    for (const [, name] of names) expect(page).include(`\n### \`${name}\`\n`)
  })

  it('has each error code', () => {
    for (const code of Object.keys(ERRORS)) expect(page).include(`| \`${code}\``)
  })

  it('has a part for each finding of doctor', () => {
    const named = /\b(?:ok|warn|fail|problem)\(\s*'([a-z-]+)'|\b(?:NAME|name) = '([a-z-]+)'/g
    const names = sources('agent/doctor/**/*.ts').flatMap(({ text }) =>
      [...text.matchAll(named)].map(([, inCall, asConstant]) => inCall ?? asConstant ?? '')
    )
    expect(new Set(names).size).greaterThan(8)
    for (const name of names) expect(page).include(`### doctor: \`${name}\``)
  })

  it('has each result, each evidence, and each reason of an Event', () => {
    const [, proved = '', unproved = ''] = read('agent/rules/drain/ack.ts').split(/^\/\*\*/m)
    const results = (status: number, text: string) =>
      [...text.matchAll(/^ \* - `([a-z-]+)`/gm)].map(([, name]) => `${status} \`${name}\``)
    const all = [...results(200, proved), ...results(503, unproved)]
    expect(all).length(8)
    for (const name of all) expect(page).include(`| ${name}`)
    for (const grade of GRADES.filter(grade => grade !== 'timer')) expect(page).include(`, \`${grade}\``)
    const reasons = /readonly reason: (.*)$/m.exec(read('agent/report/tell/event.ts'))?.[1] ?? ''
    expect(reasons.match(/'\w+'/g)).not.empty
    for (const [, reason] of reasons.matchAll(/'(\w+)'/g)) expect(page).include(`| \`${reason}\``)
  })

  it('filters the log by the level as the log writes it', async () => {
    const [, pattern = ''] = /grep -v '([^']+)'/.exec(page) ?? []
    const written: string[] = []
    const log = createLog({ level: 'info', pretty: false }, { write: line => void written.push(line) })
    log.info('normal')
    log.warn('not normal')
    expect(written.filter(line => !line.includes(pattern))).eql(written.slice(1))
  })
})
