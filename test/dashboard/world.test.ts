import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { systemClock } from '../../agent/base/clock.ts'
import { sentenceOf } from '../../agent/dashboard/model/headline.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { Hook } from '../../sandbox/kubernetes/objects.ts'
import * as manifests from '../../sandbox/manifests.ts'
import { now } from '../../sandbox/now.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { startWorld, type World } from '../../sandbox/world.ts'
import { SHOTS, startBrowser, type Browser } from './browser.ts'

// The page on a real agent in the sandbox: a rolling update under load, as a new user sees it.

const REPLICAS = 6
/** Set by `npm run screenshot`: the README shows a screenshot of this suite. */
const README_SHOT = process.env['README_SHOT']
const preStop = (agentUrl: string): Hook => ({
  exec: {
    command: ['sh', '-c', `curl -fsS -m 25 --interface $POD_IP -X POST ${agentUrl}/v1/prestop || sleep 5`]
  }
})

describe('dashboard on the sandbox', function () {
  this.timeout(60_000)
  let browser: Browser
  let world: World
  before(async () => {
    browser = await startBrowser()
    world = await startWorld({ replicas: REPLICAS, gateways: 2, workers: 2, seed: 1, preStop })
  })
  after(async () => {
    await browser.close()
    await world.close()
  })

  it('shows drains appear, advance, and stay when the pods are gone; and finds the agent again', async () => {
    const agent = await world.startAgent()
    const { page, complaints, foreign } = await browser.open(`${world.agentUrl}/#find=-`)
    await page.getByRole('heading', { level: 1 }).getByText('All is well.').waitFor()
    await page.getByText('No pod has ended since the agent started.').waitFor()
    const load = world.startLoad({ rate: 200, seed: 1, traffic: 'all', timeoutMs: 5000 })
    await waitFor('requests are answered', () => (load.counts()?.requests ?? 0) > 0)

    await record(page)
    // Slow answers are in flight at every pod, so that drains last long enough to be drawn.
    const proxies = world.gateways.gateways.map(({ proxy }) => proxy)
    const slow = proxies.flatMap(proxy =>
      Array.from({ length: 12 }, async () => (await fetch(`${proxy}/?ms=3000`)).arrayBuffer())
    )
    await rollOut({ store: world.kubernetes.store, kubelet: world.kubelet })
    await page.getByRole('heading', { level: 1 }).getByText('All is well.').waitFor()
    await page.getByText(`${REPLICAS} drains`, { exact: true }).waitFor()
    expect(await page.locator('[data-lane]').count()).to.equal(REPLICAS)
    expect(await page.locator('.lane-row:not(.rollout) .mark.good').count()).to.equal(REPLICAS)
    await load.stop()
    await Promise.all(slow)
    const seen = await page.evaluate<string[]>('[...window.seen]')
    expect(
      seen.some(text => /^\d pods? on the way out\.$/.test(text)),
      seen.join('\n')
    ).to.equal(true)
    expect(seen).to.include.members(['waiting', 'proved'])

    const response = await fetch(`${world.agentUrl}/api/state`)
    const state = (await response.json()) as Snapshot
    await page.getByRole('searchbox', { name: 'Search drains' }).fill('')
    await page.getByText('all gone in').waitFor()
    await page.getByRole('button', { name: 'Deployment' }).click()
    await page.screenshot({ path: README_SHOT ?? join(SHOTS, 'world.png'), fullPage: true })
    const shown = await page.locator('.lane-row:not(.rollout) [role=cell].lag').allTextContents()
    expect(shown).to.have.length(REPLICAS)
    expect(
      shown.every(text => /^[\d.]+ m?s$/.test(text)),
      shown.join(' ')
    ).to.equal(true)
    compareClocks(state)

    // The agent stops and a new one starts: the page reports that, and finds the new one by itself.
    await agent.close()
    await page.getByRole('heading', { level: 1 }).getByText('The agent is not reached.').waitFor()
    await world.startAgent()
    await page.getByRole('heading', { level: 1 }).getByText('All is well.').waitFor()
    await page.getByText('No pod has ended since the agent started.').waitFor()
    expect(foreign).to.deep.equal([])
    // The browser itself logs each failed connection.
    expect(complaints.filter(text => !/ERR_CONNECTION|Failed to load/.test(text))).to.deep.equal([])
  })

  it('has written an Event on every pod', async () => {
    const events = () => world.kubernetes.store.list('events').filter(event => event['reason'] === 'Drained')
    await waitFor('all Events are written', () => events().length >= REPLICAS)
    for (const event of events()) {
      expect(event['note']).to.match(/^out of 2 gateways in \d\S*m?s, idle after \d\S*s, evidence barrier: /)
    }
  })

  it('is red within 5 s of a gateway that does not answer, and stays red (D1)', async () => {
    const { page } = await browser.open(world.agentUrl)
    const headline = page.getByRole('heading', { level: 1 })
    await headline.getByText('All is well.').waitFor()
    const name = addSilentGateway(world)
    await headline.getByText('1 of 3 gateways unreachable: rollouts wait.').waitFor({ timeout: 5000 })
    await headline.getByText(name).waitFor()
    const seen = new Set<string | null>()
    const until = performance.now() + 5000
    const fiveMore = async () => {
      seen.add(await page.locator('header').getAttribute('class'))
      return performance.now() > until
    }
    await waitFor('five more seconds', fiveMore)
    expect([...seen]).to.deep.equal(['top bad'])
    await page.close()
  })

  /** Records the headline and the states of the lanes, because a drain can be over before the test asks the page. */
  const record = (page: Page) =>
    page.evaluate(`
      window.seen = new Set()
      new MutationObserver(() => {
        window.seen.add(document.querySelector('h1 .sentence').textContent)
        for (const mark of document.querySelectorAll('.lane-row .mark')) window.seen.add(mark.textContent)
      }).observe(document.body, { subtree: true, childList: true, characterData: true })
    `)

  /**
   * The sandbox's own clocks show when it deleted a pod and when that pod's hook ended. The agent must have seen the deletion
   * after that, and must have answered before the hook ended. The delays depend on the load of the machine, so only the smallest
   * delay has a limit, and that limit is wide.
   */
  function compareClocks({ drains, past }: Snapshot): void {
    const records = new Map(world.kubelet.records().map(record => [record.uid, record]))
    const offset = systemClock.now() - now()
    // Drains of pods that are gone are kept until the holders have been listed once more.
    const all = [...drains, ...past]
    expect(all).to.have.length(REPLICAS)
    const late = all.map(({ uid, moments }) => {
      const record = records.get(uid)
      const deletedAt = offset + (world.syncLags.decidedAt(uid) ?? Number.NaN)
      const hookEndedAt = offset + Math.max(...(record?.hooks.map(hook => hook.endedAt) ?? []))
      expect(moments.ackAt).to.be.a('number')
      expect(moments.ackAt!).to.be.below(hookEndedAt + 5)
      return moments.seenAt - deletedAt
    })
    expect(Math.min(...late)).to.be.within(-5, 50)
  }
})

describe('dashboard after a restart of the agent', function () {
  this.timeout(60_000)
  let world: World
  before(async () => {
    world = await startWorld({ replicas: 2, gateways: 2, workers: 1, seed: 1, preStop })
  })
  after(() => world.close())

  it('still says that an upstream with a dead owner lists no pod that serves (E2)', async () => {
    const agent = await world.startAgent()
    const head = async () =>
      sentenceOf((await (await fetch(`${world.agentUrl}/api/state`)).json()) as Snapshot).head
    const isTold = async () => (await head()).endsWith(' lists no pod that serves.')
    await waitFor('all is well', async () => (await head()) === 'All is well.')
    world.delayOwner(600_000)
    await rollOut({ store: world.kubernetes.store, kubelet: world.kubelet })
    await waitFor('it is told', isTold)
    await agent.close()
    await world.startAgent()
    await waitFor('it is told again', isTold)
  })
})

/** Adds a Ready gateway at whose address nothing listens. Returns its name. */
function addSilentGateway({ kubernetes: { store } }: World): string {
  const name = 'apisix-9'
  store.create('pods', manifests.gatewayPod(name))
  const now = new Date(store.now()).toISOString()
  store.patchStatus('pods', manifests.GATEWAY_NAMESPACE, name, manifests.runningStatus('127.93.255.254', now))
  return name
}
