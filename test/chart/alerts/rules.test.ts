import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { anchorsOf } from '../../../scripts/docs/links.ts'
import { firstSeen, seenAtOwner } from '../../../agent/rules/members/behind.ts'
import { only, render } from '../helm.ts'
import { rowsOf } from '../../build/rows.ts'
import { play } from './play.ts'
import { promtool } from './promtool.ts'
import { recordRollout, STEP_S, STEPS, type Recorded } from './record.ts'

interface Rule {
  readonly alert: string
  readonly annotations: Readonly<Record<string, string>>
}

type Series = Readonly<Record<string, string>>
const { bad: BAD_CASES, good: GOOD_CASES } = rowsOf('./cases.yaml', import.meta.url) as {
  readonly bad: Readonly<Record<string, { series: Series; at: string; labels?: Series }>>
  readonly good: Readonly<Record<string, Series>>
}

/** The labels of an alert that show its subject. */
const ABOUT = 'alertname, api, error, gateway, kind, namespace, result, service'
const FIRING = `count by (${ABOUT}) (ALERTS{alertstate="firing"})`
const MINUTES = (STEPS * STEP_S) / 60

describe('alerts', () => {
  let rollout: Recorded
  before(async () => (rollout = await recordRollout()))

  const spec = (values = {}) =>
    only(render({ 'monitoring.prometheusRule.enabled': true, ...values }), 'PrometheusRule')['spec'] as {
      groups: readonly { rules: readonly Rule[] }[]
    }
  const rules = (values = {}) => spec(values).groups.flatMap(group => group.rules)

  /** Checks which alerts fire at these times, while these series differ from those of the rollout. */
  const firing = (
    differs: Readonly<Record<string, string>>,
    looks: Readonly<Record<string, readonly Readonly<Record<string, string>>[]>>
  ) =>
    play({
      rollout,
      rules: spec(),
      differs,
      looks: Object.entries(looks).map(([at, fires]) => ({
        at,
        expr: FIRING,
        samples: fires.map(labels => ({ labels, value: 1 }))
      }))
    })

  it('are rules that promtool accepts', () => {
    const { ok, text } = promtool(['check', 'rules', '--lint=all', '--lint-fatal', 'rules.yaml'], {
      'rules.yaml': stringify(spec())
    })
    expect(ok, text).to.equal(true)
    expect(text).to.include(`${rules().length} rules found`)
  })

  it('have a bad case each', () => {
    expect(Object.keys(BAD_CASES)).to.have.members(rules().map(({ alert }) => alert))
  })

  for (const [alert, { series, at, labels }] of Object.entries(BAD_CASES)) {
    it(`${alert} fires in its bad case, alone, and not before (D5)`, () => {
      const { ok, text } = firing(series, { '4m45s': [], [at]: [{ alertname: alert, ...labels }] })
      expect(ok, text).to.equal(true)
    })
  }

  it('ApisixDrainOwnerBehind fires once while an owner is dead through five rollouts, each of which replaces the pods of the last (E3)', () => {
    let clocks = firstSeen(40, [], 0)
    const behind = Array.from({ length: 20 }, (_, step) => {
      const at = step * STEP_S
      // Half of the time the pods of the last rollout have ended, and those of the next are not Ready.
      const differs = new Map(step % 4 < 2 ? [[`pod-${Math.floor(step / 4)}:80`, at] as const] : [])
      clocks = seenAtOwner(clocks, { revision: 40, differs, gained: false, stale: true }, [], at)
      return at - clocks.owes!
    })
    expect(behind).to.deep.equal(behind.toSorted((a, b) => a - b))
    const series = { apisix_drain_owner_behind_seconds: `0x19 ${behind.join(' ')}` }
    const fires = [{ alertname: 'ApisixDrainOwnerBehind' }]
    const times = Array.from({ length: 15 }, (_, i) => [`${6 * 60 + 15 + i * STEP_S}s`, fires] as const)
    const { ok, text } = firing(series, { '5m45s': [], ...Object.fromEntries(times) })
    expect(ok, text).to.equal(true)
  })

  for (const [what, differs] of Object.entries(GOOD_CASES)) {
    it(`are silent in ${what}`, () => {
      const times = Array.from({ length: MINUTES * 2 }, (_, i) => [`${i * 30}s`, []] as const)
      const { ok, text } = firing(differs, Object.fromEntries(times))
      expect(ok, text).to.equal(true)
    })
  }

  it('are tested by a tool that notices an alert', () => {
    const differs = BAD_CASES['ApisixDrainLoopStuck']?.series ?? {}
    expect(firing(differs, { '7m': [] }).ok).to.equal(false)
  })

  it('are not tested with a series that no agent has', () => {
    const play = () => firing({ 'apisix_drain_gateway_evidence{evidence="timer"}': '1x80' }, {})
    expect(play).to.throw('a real agent has no series')
  })

  it('lead to a section of docs/troubleshooting.md (D15)', () => {
    const page = readFileSync(new URL('../../../docs/troubleshooting.md', import.meta.url), 'utf8')
    const anchors = anchorsOf(page)
    for (const { alert, annotations } of rules()) {
      const [file, anchor = ''] = (annotations['runbook_url'] ?? '').split('#')
      expect(file, alert).to.equal('docs/troubleshooting.md')
      expect(anchors, alert).to.include(anchor)
    }
    const own = rules({ 'monitoring.prometheusRule.docs': 'https://git.example/docs' })
    expect(own[0]?.annotations['runbook_url']).to.equal(
      'https://git.example/docs/troubleshooting.md#apisixdraindown'
    )
  })

  it('are made from metrics that promtool accepts, as a real agent serves them (D15)', () => {
    const { ok, text } = promtool(['check', 'metrics'], {}, rollout.text)
    expect(ok, text).to.equal(true)
    expect(text).to.equal('')
  })
})
