import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { BUILT_AT, ensureDashboard } from '../../scripts/dashboard.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { until } from '../build/apisix.ts'
import type { Opened } from './browser.ts'
import type { FakeAgent } from './fake-agent.ts'
import { sceneOf } from './snapshots.ts'
import { createStage } from './stage.ts'

// The limits of the page. A time would depend on the machine, so the browser counts the calls of functions of the page.

const LARGEST_BUNDLE = 60_000
const CALLS_TO_READY = 300_000
const CALLS_OF_UPDATE = 15_000

describe('dashboard at scale', function () {
  this.timeout(90_000)
  const stage = createStage()

  /** Returns how many calls of functions of the page `play` makes. */
  async function callsOf({ coverage }: Page, play: () => Promise<void>): Promise<number> {
    await coverage.startJSCoverage({ resetOnNavigation: false })
    await play()
    const scripts = await coverage.stopJSCoverage()
    return scripts
      .flatMap(({ functions }) => functions)
      .reduce((sum, { ranges: [all] }) => sum + (all?.count ?? 0), 0)
  }

  it('is smaller than 60 kB in total, gzipped', async () => {
    await ensureDashboard()
    const zipped = readdirSync(BUILT_AT).filter(name => /\.(js|css|svg|html)\.gz$/.test(name))
    const bytes = zipped.reduce((sum, name) => sum + readFileSync(join(BUILT_AT, name)).length, 0)
    expect(zipped.length).to.be.above(4)
    expect(bytes).to.be.below(LARGEST_BUNDLE)
  })

  it('makes few calls until it shows 5,000 holders', async () => {
    const { url } = await stage.start(sceneOf({ now: Date.now(), live: 50, past: 500, holders: 5000 }))
    const { page } = await stage.open('about:blank')
    const calls = await callsOf(page, async () => {
      await page.goto(url)
      await page.getByText(/^\d+ of 5,000 holders$/).waitFor()
    })
    expect(calls).to.be.within(1, CALLS_TO_READY)
    await page.close()
  })

  it('draws the first of 5,000 holders, more on demand, and finds the others', async () => {
    const agent = await stage.start(sceneOf({ now: Date.now(), live: 0, past: 10, holders: 5000 }))
    const { page, complaints } = await stage.open(`${agent.url}/#holders=all`)
    const table = page.getByRole('table', { name: 'Holders' })
    await table.waitFor()
    expect(await table.getAttribute('aria-rowcount')).to.equal('5001')
    expect(await table.getByRole('row').count()).to.equal(51)
    await page.getByRole('button', { name: 'Show more: 50 of 5,000 rows are shown' }).click()
    await page.getByText('Show more: 100 of 5,000').waitFor()
    expect(await table.getByRole('row').count()).to.equal(101)
    await page.getByRole('searchbox', { name: 'Search holders' }).fill('web-3211')
    await page.getByText('1 of 5,000 holders').waitFor()
    await table.getByText('upstreams/web-3211').waitFor()
    await page.getByRole('searchbox', { name: 'Search holders' }).fill('web-1')
    await table.getByRole('button', { name: 'Drains of pay/web-1 (upstreams/web-1)', exact: true }).click()
    expect(await page.getByRole('searchbox', { name: 'Search drains' }).inputValue()).to.equal(
      'upstreams/web-1'
    )
    await page.getByText('10 drains', { exact: true }).waitFor()
    expect(complaints).to.deep.equal([])
    await page.close()
  })

  it('makes few calls for each update with 500 live drains and 5,000 holders', async () => {
    const scene = sceneOf({ now: Date.now(), live: 500, past: 500, holders: 5000 })
    const agent = await stage.start(scene)
    const opened = await stage.open(agent.url)
    await opened.page.getByRole('heading', { level: 1 }).getByText('500 pods on the way out.').waitFor()
    const calls = await callsOf(opened.page, () => update(opened, agent, scene))
    expect(calls / UPDATES).to.be.within(1, CALLS_OF_UPDATE)
    expect(opened.complaints).to.deep.equal([])
    await opened.page.close()
  })
})

const UPDATES = 30

/** Plays updates, of which each changes every tenth drain, and waits until the page has drawn each. */
async function update({ page }: Opened, agent: FakeAgent, scene: Snapshot): Promise<void> {
  await page.evaluate(`
    window.drawn = 0
    new MutationObserver(() => { window.drawn += 1 })
      .observe(document.querySelector('main'), { subtree: true, attributes: true, childList: true, characterData: true })
  `)
  for (let i = 1; i <= UPDATES; i++) {
    const drawn = await page.evaluate<number>('window.drawn')
    const drains = scene.drains.map((drain, d) =>
      d % 10 === i % 10 ? { ...drain, hooks: 1 + (i % 3), why: `${i} requests are in flight` } : drain
    )
    agent.show({ ...scene, at: scene.at + i * 100, drains })
    await until('it is drawn', async () => (await page.evaluate<number>('window.drawn')) > drawn)
  }
}
