import { expect } from 'chai'
import type { Page } from 'playwright-core'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import { violations } from './axe.ts'
import type { Browser } from './browser.ts'
import { sceneOf } from './snapshots.ts'
import { createStage } from './stage.ts'

// How people read the page: with a keyboard, a screen reader, a phone, a magnifier, on paper, and from a colleague's link.

/** Waits until the condition is true in the page. The test polls, because the page's own policy allows no script that polls. */
const until = (page: Page, condition: string) => waitFor(condition, () => page.evaluate<boolean>(condition))

const REASON =
  'no connection to the barrier at http://10.0.9.1:9092/v1/barrier/state (BARRIER_UNREACHABLE): connect ECONNREFUSED 10.0.9.1:9092'

describe('dashboard, as it is read', function () {
  this.timeout(60_000)
  const stage = createStage()

  const scene = (differs = {}) => sceneOf({ now: Date.now(), live: 3, past: 60, holders: 40, ...differs })
  const start = (snapshot: Snapshot) => stage.start(snapshot)
  const opened = async (
    snapshot: Snapshot,
    options: Parameters<Browser['open']>[1] & { hash?: string } = {}
  ) => {
    const { url } = stage.agent() ?? (await start(snapshot))
    const found = await stage.open(`${url}/${options.hash ?? '#find=shop'}`, options)
    await found.page.getByRole('table', { name: 'Drains' }).waitFor()
    return found
  }
  const withError = (): Snapshot => {
    const whole = scene()
    const [first, ...others] = whole.gateways
    const barrier = { lastSuccessAt: whole.at - 8000, lastAttemptAt: whole.at, problem: REASON }
    return {
      ...whole,
      gateways: [{ ...first!, available: 'observed', why: REASON, barrier }, ...others]
    }
  }

  for (const width of [1440, 1024, 768, 390, 320]) {
    it(`keeps the gateways table readable with an error in it, ${width} px wide (D6)`, async () => {
      const { page } = await opened(withError(), { width })
      const region = page.getByRole('region', { name: 'Gateways and workers' }).last()
      await region.getByText(REASON).waitFor()
      // A column that is too narrow breaks words, so a text in it has more lines than words.
      const broken = await page.evaluate<string[]>(`
        (() => {
          const found = []
          const texts = document.createTreeWalker(document.querySelector('.cards'), NodeFilter.SHOW_TEXT)
          while (texts.nextNode()) {
            const range = document.createRange()
            range.selectNodeContents(texts.currentNode)
            const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
            const words = texts.currentNode.data.trim().split(/[\\s/:.-]+/)
            if (lines.size > words.length) found.push(texts.currentNode.data)
          }
          return found
        })()
      `)
      expect(broken).to.deep.equal([])
      await page.close()
    })
  }

  it('shows the wall clock with its zone, and a date and zone for every time (D9)', async () => {
    const { page } = await opened(scene())
    const texts = await page.locator('header time').allTextContents()
    expect(texts).to.have.length(1)
    expect(texts[0]).to.match(/^\d+ \w+ 20\d\d, \d\d:\d\d:\d\d \S+/)
    const zone = texts[0]!.split(':').at(-1)!.slice(3)
    const times = page.locator('main time')
    expect(await times.count()).to.be.above(15)
    const titles = await times.evaluateAll(all => all.map(at => at.getAttribute('title')))
    for (const title of titles) {
      expect(title).to.match(/^\d+ \w+ 20\d\d, \d\d:\d\d:\d\d\.\d\d\d /)
      expect(title).to.contain(zone)
    }
    await page.close()
  })

  it('has ranges that end at now (D9)', async () => {
    const { page } = await opened(scene())
    const section = page.getByRole('region', { name: 'Sync lag' })
    // The scene has a sample every nine seconds; the newest is four seconds old.
    await section.getByText('60 drains').waitFor()
    stage.show({ ...scene(), at: Date.now() + 1_200_000 })
    await section.getByRole('button', { name: '15 min' }).click()
    await section.getByText('None in the last 15 min. 60 drains before.').waitFor()
    await section.getByRole('button', { name: '24 h' }).click()
    await section.getByText('60 drains').first().waitFor()
    await page.close()
  })

  it('leaves a list of 503 drains after a dozen tab stops at most (D12)', async () => {
    const { page } = await opened(scene({ live: 3, past: 500 }))
    await page.locator('[data-lane]').first().focus()
    let stops = 0
    const inList = () => page.evaluate<boolean>('!!document.activeElement.closest(".table")')
    while (await inList()) {
      await page.keyboard.press('Tab')
      stops += 1
      expect(stops).to.be.below(13)
    }
    await page.getByRole('searchbox', { name: 'Search drains' }).focus()
    const inSection = () =>
      page.evaluate<boolean>(`!!document.activeElement.closest('section[aria-labelledby="drains"]')`)
    for (stops = 0; await inSection(); stops++) await page.keyboard.press('Tab')
    expect(stops).to.be.below(13)
    await page.close()
  })

  it('moves through the drains by arrow keys, and keeps the focus while they change (D12)', async () => {
    const whole = scene({ live: 0, past: 45 })
    const { page } = await opened(whole)
    const ids = await page
      .locator('[data-lane]')
      .evaluateAll(all => all.map(at => at.getAttribute('data-lane')))
    await page.locator('[data-lane]').first().focus()
    await page.evaluate(`for (let i = 0; i < 2; i++)
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))`)
    await until(page, `document.activeElement.dataset.lane === ${JSON.stringify(ids[2])}`)
    await page.keyboard.press('End')
    await until(page, 'document.activeElement.dataset.lane?.startsWith("past-0 ")')
    await page.keyboard.press('PageUp')
    await until(page, 'document.activeElement.dataset.lane?.startsWith("past-7 ")')
    // All rows above the focused row disappear. The row moves up and must keep the focus.
    stage.show({ ...whole, past: whole.past.slice(0, 20) })
    await page.getByText('20 drains', { exact: true }).waitFor()
    await until(page, 'document.activeElement.dataset.lane?.startsWith("past-7 ")')
    await page.keyboard.press('Home')
    await until(page, 'document.activeElement.ariaLabel === "shop / Deployment web"')
    // The row of a drain that is live is another one, and the focus stays in the table.
    await page.locator('[data-lane^="past-7 "]').focus()
    const drains = whole.past.slice(7, 8)
    stage.show({ ...whole, drains, past: whole.past.slice(0, 30).filter(one => !drains.includes(one)) })
    await page.getByText('30 drains', { exact: true }).waitFor()
    await until(page, '!!document.activeElement.closest(".table")')
    await page.close()
  })

  it('has one live region, which stays calm while numbers change (D12)', async () => {
    const whole = scene({ live: 40 })
    const { page } = await opened(whole)
    expect(await page.locator('[aria-live], [role=status], [role=alert], [role=log]').count()).to.equal(1)
    await page.evaluate(`
      window.spoken = []
      new MutationObserver(() => window.spoken.push(document.querySelector('[role=status]').textContent))
        .observe(document.querySelector('[role=status]'), { subtree: true, childList: true, characterData: true })
    `)
    for (let live = 39; live > 0; live -= 8) {
      stage.show({ ...whole, drains: whole.drains.slice(0, live) })
      await page.getByRole('heading', { level: 1 }).getByText(`${live} pod`).waitFor()
    }
    expect(await page.evaluate<string[]>('window.spoken')).to.deep.equal([])
    const vouch = { ok: false as const, why: 'no gateway is known' }
    stage.show({ ...whole, agent: { ...whole.agent, vouch } })
    await page
      .getByRole('status')
      .getByText('The agent cannot vouch for an answer.')
      .waitFor({ state: 'attached' })
    await page.close()
  })

  // A colour scheme changes no size, and a width no colour.
  for (const [scheme, width] of [
    ['light', 320],
    ['dark', 390],
    ['light', 720]
  ] as const)
    it(`fits into ${width} px without scrolling sideways, and is accessible, ${scheme} (D12)`, async () => {
      const { page } = await opened(withError(), { scheme, width, height: 800 })
      const fits = () => page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth')
      expect(await fits()).to.equal(true)
      expect(await violations(page)).to.deep.equal([])
      await page.getByRole('button', { name: 'in', exact: true }).click()
      await page.locator('[data-lane]').first().click()
      await page.getByRole('complementary').waitFor()
      expect(await fits()).to.equal(true)
      expect(await violations(page)).to.deep.equal([])
      await page.close()
    })

  it('shows the end of every name, where names of one workload differ (D12)', async () => {
    const { page } = await opened(scene({ name: 'a-workload-with-a-rather-long-name' }), { width: 320 })
    const hidden = await page.evaluate<string[]>(`
      [...document.querySelectorAll('.pod .cut, .holder .cut')].filter(cut => {
        const end = cut.querySelector('.whole').getBoundingClientRect()
        const box = cut.closest('[role=cell]').getBoundingClientRect()
        return end.right > box.right + 1 || end.width < 20
      }).map(cut => cut.textContent)
    `)
    expect(hidden).to.deep.equal([])
    expect(await page.locator('.pod .cut').count()).to.be.above(5)
    await page.close()
  })

  it('keeps filters and the open drain in its address: for Back, a reload, and a link (D13)', async () => {
    const { page } = await opened(scene())
    await page.getByRole('button', { name: 'live', exact: true }).click()
    await page.getByText('3 drains', { exact: true }).waitFor()
    await page.locator('[data-lane]').nth(1).click()
    await page.getByRole('complementary').waitFor()
    await page.getByRole('searchbox', { name: 'Search holders' }).fill('web-17')
    await page.getByText('1 of 40 holders').waitFor()
    const link = page.url()
    const name = await page.getByRole('complementary').getByRole('heading', { level: 3 }).textContent()

    const { page: other } = await opened(scene(), { hash: new URL(link).hash })
    await other.getByRole('complementary').getByRole('heading', { name: name! }).waitFor()
    await other.getByText('3 drains', { exact: true }).waitFor()
    await other.getByText('1 of 40 holders').waitFor()
    await other.close()

    await page.goBack()
    await page.getByRole('complementary').waitFor({ state: 'detached' })
    await page.goBack()
    await page.getByText('63 drains', { exact: true }).waitFor()
    await page.goForward()
    await page.getByText('3 drains', { exact: true }).waitFor()
    await page.close()
  })

  it('scrolls to the drain of a link, and reports if that drain is not kept any more (D13)', async () => {
    const whole = scene({ past: 400 })
    const { page } = await opened(whole, { hash: '#drain=past-333' })
    await page.getByRole('complementary').waitFor()
    await page.locator('[data-lane^="past-333 "]').waitFor()
    await page.close()
    const { page: other } = await opened(whole, { hash: '#drain=long-gone' })
    await other.getByText('The drain of this link is not among those that the agent keeps.').waitFor()
    await other.close()
  })

  it('counts the waiting drains in the title of its tab (D13)', async () => {
    const { page } = await opened(scene())
    await until(
      page,
      'document.title === "(! 3 waiting) apisix-drain" || document.title === "(3 waiting) apisix-drain"'
    )
    stage.show(scene({ live: 0, past: 5, holders: 1 }))
    await until(page, 'document.title === "apisix-drain"')
    await page.close()
  })

  it('can be used by keyboard alone, from the skip link to the last control', async () => {
    const { page } = await opened(scene(), { height: 800 })
    const press = (key: string) => page.keyboard.press(key)
    const label = () =>
      page.evaluate<string>('document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()')
    /** Presses Tab until the control has the focus. Expects that each stop on the way has a name and shows its focus. */
    const tabTo = async (name: RegExp) => {
      for (let i = 0; i < 60; i++) {
        await press('Tab')
        const named = await label()
        expect(named).to.not.equal('')
        const seen = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
        expect(seen, named).to.not.equal('none')
        if (name.test(named)) return
      }
      throw new Error(`no tab stop leads to ${name}`)
    }
    await press('Tab')
    expect(await label()).to.equal('Skip to the content')
    await press('Enter')
    expect(await page.evaluate('document.activeElement.id')).to.equal('main')
    await page.reload()
    await page.getByRole('table', { name: 'Drains' }).waitFor()

    await tabTo(/^Show it$/)
    await tabTo(/^Search drains$/)
    await page.keyboard.type('xx63')
    await page.getByText('1 drain', { exact: true }).first().waitFor()
    await press('ControlOrMeta+A')
    await press('Delete')
    await tabTo(/^all$/)
    await press('ArrowRight')
    await press('Enter')
    await page.getByText('3 drains', { exact: true }).waitFor()
    await tabTo(/^shop \/ Deployment web$/)
    await press('ArrowDown')
    await until(page, 'document.activeElement.dataset.lane !== undefined')
    const lane = await label()
    await press('Enter')
    const detail = page.getByRole('complementary')
    await detail.waitFor()
    await tabTo(/^Copy$/)
    await press('Escape')
    await detail.waitFor({ state: 'detached' })
    expect(await label()).to.equal(lane)
    await tabTo(/^Search holders$/)
    await page.keyboard.type('web-17')
    await page.getByText('1 of 40 holders').waitFor()
    await tabTo(/^1 h$/)
    await press('ArrowRight')
    await press('Enter')
    await until(page, 'location.hash.includes("range=24+h")')
    await tabTo(/^this page as JSON$/)
    await page.close()
  })
})
