import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { BUILT_AT, ensureDashboard } from '../../scripts/dashboard.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { Opened } from './browser.ts'
import type { FakeAgent } from './fake-agent.ts'
import { sceneOf } from './snapshots.ts'
import { createStage } from './stage.ts'
import { longestTask } from './tasks.ts'

// The limits of the page. Other work on the machine can make a measurement slow. So a measurement is repeated, and the best
// one counts: only the page itself can make all of them slow.

const TRIES = 6
const LARGEST_BUNDLE = 60_000
const READY_MS = 1000
const LONGEST_TASK_MS = 50

describe('dashboard at scale', function () {
  this.timeout(90_000)
  const stage = createStage()

  /** Returns the first measurement below `enough`, or the smallest of several. */
  async function best(enough: number, measure: () => Promise<number>): Promise<number> {
    let least = Infinity
    for (let i = 0; i < TRIES && least >= enough; i++) least = Math.min(least, await measure())
    return least
  }

  it('is smaller than 60 kB in total, gzipped', async () => {
    await ensureDashboard()
    const zipped = readdirSync(BUILT_AT).filter(name => /\.(js|css|svg|html)\.gz$/.test(name))
    const bytes = zipped.reduce((sum, name) => sum + readFileSync(join(BUILT_AT, name)).length, 0)
    expect(zipped.length).to.be.above(4)
    expect(bytes).to.be.below(LARGEST_BUNDLE)
  })

  it('is ready in less than a second with 5,000 holders', async () => {
    const agent = await stage.start(sceneOf({ now: Date.now(), live: 50, past: 500, holders: 5000 }))
    const { url } = agent
    const ready = await best(READY_MS, async () => {
      const { page } = await stage.open('about:blank')
      await page.addInitScript(WATCH_FOR_HOLDERS)
      await page.goto(url)
      await page.getByText(/^\d+ of 5,000 holders$/).waitFor()
      const took = await page.evaluate<number>('window.readyAt')
      await page.close()
      return took
    })
    expect(ready).to.be.above(0)
    expect(ready).to.be.below(READY_MS)
  })

  it('draws only the visible ones of 5,000 holders, and finds the others', async () => {
    const agent = await stage.start(sceneOf({ now: Date.now(), live: 0, past: 10, holders: 5000 }))
    const { page, complaints } = await stage.open(`${agent.url}/#holders=all`)
    const table = page.getByRole('table', { name: 'Holders' })
    await table.waitFor()
    expect(await table.getAttribute('aria-rowcount')).to.equal('5001')
    expect(await table.getByRole('row').count()).to.be.below(40)
    await table.locator('.scroll').press('End')
    await table.getByText('upstreams/web-4999').waitFor()
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

  it('has no task of 50 ms with 500 live drains and 5,000 holders at ten updates a second', async () => {
    const now = Date.now()
    const scene = sceneOf({ now, live: 500, past: 500, holders: 5000 })
    const agent = await stage.start(scene)
    const opened = await stage.open(agent.url)
    await opened.page.getByRole('heading', { level: 1 }).getByText('500 pods on the way out.').waitFor()
    const longest = await best(LONGEST_TASK_MS, () =>
      longestTask(opened.page, () => update(opened, agent, scene))
    )
    console.log(`      the longest task took ${longest.toFixed(1)} ms of CPU time`)
    expect(longest).to.be.below(LONGEST_TASK_MS)
    expect(opened.complaints).to.deep.equal([])
    await opened.page.close()
  })
})

/** The page itself measures when it shows the holders, so that the test's call to the browser does not count. */
const WATCH_FOR_HOLDERS = `
  new MutationObserver(() => {
    if (!window.readyAt && document.body?.textContent.includes('of 5,000 holders')) window.readyAt = performance.now()
  }).observe(document, { subtree: true, childList: true, characterData: true })
`

const UPDATES = 30

/** Plays three seconds of updates. Each update changes every tenth drain. */
async function update({ page }: Opened, agent: FakeAgent, scene: Snapshot): Promise<void> {
  await watchDrawing(page)
  const shown = await drawn(page)
  for (let i = 1; i <= UPDATES; i++) {
    const at = scene.at + i * 100
    const drains = scene.drains.map((drain, d) =>
      d % 10 === i % 10 ? { ...drain, hooks: 1 + (i % 3), why: `${i} requests are in flight` } : drain
    )
    agent.show({ ...scene, at, drains, totals: { ...scene.totals, rounds: i } })
    await new Promise(resolve => void setTimeout(resolve, 100))
  }
  // A page that does not draw would have no long tasks, so it must have drawn. On a busy machine several updates share a frame.
  expect((await drawn(page)) - shown).to.be.above(UPDATES / 6)
}

const watchDrawing = (page: Page) =>
  page.evaluate(`
    window.drawn ??= 0
    window.watcher ??= new MutationObserver(() => { window.drawn += 1 })
    window.watcher.observe(document.querySelector('main'), { subtree: true, attributes: true, childList: true, characterData: true })
  `)
const drawn = (page: Page) => page.evaluate<number>('window.drawn')
