import { expect } from 'chai'
import type { AckView } from '../../agent/report/snapshot/drain-view.ts'
import { violations } from './axe.ts'
import { sceneOf } from './snapshots.ts'
import { createStage } from './stage.ts'

describe('dashboard, the answers of several agents (D7)', function () {
  this.timeout(60_000)
  const stage = createStage()
  const scene = sceneOf({ now: Date.now(), live: 0, past: 0, holders: 0 })
  const answer = (name: string, by: string, ack: Partial<AckView['ack']> = {}): AckView => ({
    at: scene.at - 3000,
    by,
    ack: {
      pod: { namespace: 'shop', name, uid: name },
      elapsedMs: 40,
      status: 200,
      result: 'drained',
      evidence: 'barrier',
      why: '',
      ...ack
    }
  })

  it('shows each answer with the agent that gave it, and says where one agent is alone', async () => {
    const late = { status: 503, result: 'deadline', evidence: 'none', why: '<b>too late</b>' } as const
    const acks = [answer('web-1', scene.agent.name), answer('web-2', 'drain-b', late)]
    const agent = await stage.start({ ...scene, acks })
    const { page, complaints } = await stage.open(agent.url)
    const row = (name: string) => page.getByRole('row').filter({ hasText: name })
    await row('shop/web-1').getByText('200 drained').waitFor()
    for (const text of ['503 deadline', '<b>too late</b>', 'drain-b'])
      await row('shop/web-2').getByText(text).waitFor()
    expect(await page.getByText('No gateway has the barrier').count()).to.equal(0)
    expect(await violations(page)).to.deep.equal([])

    agent.show({ ...scene, acks, gateways: scene.gateways.map(one => ({ ...one, plugin: null })) })
    await page.getByText('No gateway has the barrier: these are the answers of this agent only.').waitFor()
    expect(complaints).to.deep.equal([])
    await page.close()
  })
})
