import { expect } from 'chai'
import type { AgentView, Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { violations } from './axe.ts'
import { sceneOf } from './snapshots.ts'
import { createStage } from './stage.ts'

describe('dashboard, of several agents (D7)', function () {
  this.timeout(60_000)
  const stage = createStage()

  const scene = sceneOf({ now: Date.now(), live: 0, past: 0, holders: 0 })
  const [self] = scene.agents as readonly [AgentView]
  const other: AgentView = {
    ...self,
    id: 'b',
    name: 'drain-b',
    address: '10.0.0.2:8081',
    link: 'live',
    leads: false
  }
  const lost: AgentView = { ...other, link: 'lost', problem: 'no answer from 10.0.0.2:8081 (ECONNREFUSED)' }
  const missing = [{ part: 'watch:pods', why: 'the first list is not complete yet' }]
  const withAgents = (...agents: readonly AgentView[]): Snapshot => ({ ...scene, agents: [self, ...agents] })

  it('shows the agent that answers, the leader, versions and missing parts; later the lost agent, also in the headline', async () => {
    const agent = await stage.start(withAgents({ ...other, plugins: ['0.2.0'], missingParts: missing }))
    const { page, complaints } = await stage.open(agent.url)
    const card = page.getByRole('region', { name: 'Agents' }).last()
    const row = (name: string) => card.getByRole('row').filter({ hasText: name })
    await row(self.name).getByText('you are here').waitFor()
    for (const text of ['live', '0.2.0', 'plugin 0.2.0', 'the first list is not complete yet'])
      await row('drain-b').getByText(text).first().waitFor()
    await page.getByText(`${self.name}, 2 of 2 agents`).waitFor()
    expect(await row('drain-b').getByText('leads', { exact: true }).count()).to.equal(0)
    await row(self.name).getByText('leads', { exact: true }).waitFor()
    expect(await violations(page)).to.deep.equal([])

    agent.show(withAgents(lost))
    await row('drain-b').getByText('does not answer').waitFor()
    await row('drain-b').getByText(lost.problem).waitFor()
    await page.getByRole('heading', { level: 1 }).getByText('1 of 2 agents does not answer.').waitFor()
    await page.getByText(`${self.name}, 1 of 2 agents`).waitFor()
    expect(await violations(page)).to.deep.equal([])
    expect(complaints).to.deep.equal([])
    await page.close()
  })
})
