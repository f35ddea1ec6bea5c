import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { startBrowser, type Browser, type Opened } from './browser.ts'
import { startFakeAgent, type FakeAgent } from './fake-agent.ts'

interface Stage {
  /** Starts the agent of this test. */
  start(...args: Parameters<typeof startFakeAgent>): Promise<FakeAgent>
  /** The agent of this test, if it was started. */
  agent(): FakeAgent | undefined
  show(snapshot: Snapshot): void
  open(...args: Parameters<Browser['open']>): Promise<Opened>
}

/** Makes one browser for all tests of a suite, and an agent for each test. Hooks of mocha end the browser and the agents. */
export function createStage(): Stage {
  let browser: Browser
  let agent: FakeAgent | undefined
  before(async () => {
    browser = await startBrowser()
  })
  after(() => browser.close())
  afterEach(async () => {
    await agent?.close()
    agent = undefined
  })
  return {
    start: async (...args) => (agent = await startFakeAgent(...args)),
    agent: () => agent,
    show: snapshot => agent!.show(snapshot),
    open: (...args) => browser.open(...args)
  }
}
