import { join } from 'node:path'
import { expect } from 'chai'
import type { AckView } from '../../agent/report/snapshot/drain-view.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { secretOf } from '../build/config.ts'
import { violations } from './axe.ts'
import { SHOTS } from './browser.ts'
import { sceneOf } from './snapshots.ts'
import { createStage } from './stage.ts'

const PROVED = { kind: 'proven', grade: 'barrier', places: 1, lastEndpoint: false } as const

// The page in a real Chromium. It is served by the agent's own HTTP code, with snapshots that a test makes.

describe('dashboard page', () => {
  const stage = createStage()

  const start = (snapshot: Snapshot, options = {}) => stage.start(snapshot, options)
  const scene = (differs = {}) => sceneOf({ now: Date.now(), live: 3, past: 60, holders: 40, ...differs })

  for (const scheme of ['light', 'dark'] as const) {
    it(`is accessible, ${scheme}: no violation of WCAG A or AA`, async () => {
      const { url } = await start(scene())
      const { page, complaints, foreign } = await stage.open(`${url}/#find=shop`, { scheme })
      await page.getByRole('heading', { level: 1 }).getByText('3 pods on the way out').waitFor()
      expect(await violations(page)).to.deep.equal([])
      await page.screenshot({ path: join(SHOTS, `${scheme}.png`), fullPage: true })
      await page.locator('[data-lane]').nth(4).click()
      await page.getByRole('complementary').waitFor()
      await page.getByText('See for yourself').first().click()
      expect(await violations(page)).to.deep.equal([])
      await page.screenshot({ path: join(SHOTS, `${scheme}-detail.png`) })
      expect(complaints).to.deep.equal([])
      expect(foreign).to.deep.equal([])
      await page.close()
    })
  }

  it('follows the system’s colour scheme', async () => {
    const { url } = await start(scene())
    const { page } = await stage.open(url, { scheme: 'dark' })
    const ground = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    await page.getByRole('table', { name: 'Drains' }).waitFor()
    expect(await ground()).to.equal('rgb(15, 18, 24)')
    await page.emulateMedia({ colorScheme: 'light' })
    expect(await ground()).to.equal('rgb(246, 247, 249)')
    await page.close()
  })

  it('shows why a drain was not proved, and how to check it by hand', async () => {
    const { url } = await start(scene())
    const { page } = await stage.open(url)
    await page.getByText(/^In the last hour, 1 of 60 pods not proved in time/).waitFor()
    await page.getByRole('link', { name: 'Show it' }).click()
    const detail = page.getByRole('complementary')
    await detail.getByText('waiting (apisix-2: no connection').waitFor()
    await detail.getByText('http://10.0.9.3:9090/v1/upstreams | grep -F').waitFor()
    await page.getByText('1 drain', { exact: true }).first().waitFor()
    await page.close()
  })

  it('shows the long-lived connections that are left to each pod, and how many in all', async () => {
    const one = scene({ live: 2 })
    const [first, second] = one.drains
    const left = { upgraded: 3, sse: 1, streams: 0, oldestMs: 61_000 }
    const { url } = await start({
      ...one,
      drains: [
        { ...first!, why: '', gateways: [], longLived: left, phase: 'proven', verdict: PROVED },
        { ...second!, longLived: { ...left, upgraded: 1, sse: 0, streams: 2 } }
      ]
    })
    const { page } = await stage.open(`${url}/#find=shop`)
    const row = page.locator('.lane-row').filter({ hasText: first!.pod.slice(-5) })
    await page.getByText('left to the pod: 3 websockets, 1 event stream', { exact: true }).waitFor()
    await row.getByText('proved', { exact: true }).waitFor()
    await page.getByText('4 websockets, 1 event stream, 2 streams').waitFor()
    await row.getByRole('button').click()
    await page
      .getByRole('complementary')
      .getByText(/^left to the pod: 3 websockets, 1 event stream, the oldest for (61 s|1 min 01 s)$/)
      .waitFor()
    await page.close()
  })

  it('shows each answer with the agent that gave it, and says where one agent is alone', async () => {
    const quiet = scene({ live: 0, past: 0, holders: 0 })
    const answer = (name: string, by: string, ack: Partial<AckView['ack']> = {}): AckView => ({
      at: quiet.at - 3000,
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
    const late = { status: 503, result: 'deadline', evidence: 'none', why: '<b>too late</b>' } as const
    const acks = [answer('web-1', quiet.agent.name), answer('web-2', 'drain-b', late)]
    const agent = await start({ ...quiet, acks })
    const { page, complaints } = await stage.open(agent.url)
    const row = (name: string) => page.getByRole('rowgroup').filter({ hasText: name })
    await row('shop/web-1').getByText('200 drained').waitFor()
    for (const text of ['503 deadline', '<b>too late</b>', 'drain-b'])
      await row('shop/web-2').getByText(text).waitFor()
    expect(await page.getByText('No gateway has the barrier').count()).to.equal(0)
    expect(await violations(page)).to.deep.equal([])

    agent.show({ ...quiet, acks, gateways: quiet.gateways.map(one => ({ ...one, plugin: null })) })
    await page.getByText('No gateway has the barrier: these are the answers of this agent only.').waitFor()
    expect(complaints).to.deep.equal([])
    await page.close()
  })

  it('shows a rollout as a row that opens into its pods, with stuck pods, their reason and what helps (E5, E7)', async () => {
    const { url } = await start(scene({ live: 5 }))
    const { page } = await stage.open(url)
    const table = page.getByRole('table', { name: 'Drains' })
    const rollout = table.getByRole('button', { name: 'shop / Deployment web' })
    await table
      .getByText(/^apisix-2: 2 requests are in flight\. .+ after 27 s in all/)
      .nth(2)
      .waitFor()
    expect(await page.locator('[data-lane]').count(), 'the three with the shortest time left').to.equal(3)
    await rollout.click()
    await page.locator('[data-lane]').nth(6).waitFor()
    expect(await rollout.getAttribute('aria-expanded')).to.equal('true')
    expect(new URL(page.url()).hash).to.match(/^#open=/)
    expect(await violations(page)).to.deep.equal([])
    await rollout.click()
    await page.locator('[data-lane]').nth(3).waitFor({ state: 'detached' })
    await page.close()
  })

  it('renders every name as plain text', async () => {
    const name = `<img src=x onerror=alert(1)>"'\`\${alert(2)}</script><script>alert(3)</script>`
    const { url } = await start(scene({ name }))
    const { page, complaints, foreign } = await stage.open(`${url}/#find=shop`)
    await page.getByRole('heading', { level: 1 }).getByText('on the way out').waitFor()
    await page.locator('[data-lane]').nth(4).click()
    await page.getByRole('complementary').waitFor()
    const drawn = await page.locator('[data-lane]').nth(1).textContent()
    expect(drawn).to.include(`shop/${name}`)
    expect(await page.locator('img, script:not([src])').count()).to.equal(0)
    expect(complaints).to.deep.equal([])
    expect(foreign).to.deep.equal([])
    await page.close()
  })

  it('asks for the token, shows nothing before it is entered, and then opens the drain of the link (D13)', async () => {
    const token = secretOf('right')
    const { url: root } = await start(scene(), { auth: { kind: 'token', token } })
    const url = `${root}/#drain=past-33`
    const { page, foreign } = await stage.open(url)
    await page.getByText('helm get notes of the release').waitFor()
    await page.getByLabel('Token of the dashboard').fill('wrong')
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByText('That is not the token.').waitFor()
    expect(await violations(page)).to.deep.equal([])
    await page.getByLabel('Token of the dashboard').fill('right')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1 }).getByText('3 pods on the way out').waitFor()
    await page.getByRole('complementary').waitFor()
    expect(page.url(), 'the link to a drain').to.equal(url)
    expect(await page.evaluate('document.cookie')).to.equal('')
    expect(foreign).to.deep.equal([])
    await page.context().clearCookies()
    await page.getByLabel('Token of the dashboard').waitFor()
    await page.close()
  })

  it('reports that it lost the agent, keeps the last data, and reconnects by itself', async () => {
    const first = await start(scene())
    const { page } = await stage.open(`${first.url}/#find=shop`)
    await page.getByRole('heading', { level: 1 }).getByText('3 pods on the way out').waitFor()
    await first.close()
    await page.getByRole('heading', { level: 1 }).getByText('The agent is not reached.').waitFor()
    expect(await page.locator('[data-lane]').count()).to.be.above(0)
    const port = Number(new URL(first.url).port)
    await start(scene({ live: 1 }), { port })
    await page.getByRole('heading', { level: 1 }).getByText('1 pod on the way out').waitFor()
    await page.getByText('live', { exact: true }).first().waitFor()
    await page.close()
  })
})
