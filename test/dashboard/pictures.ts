import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { Hook } from '../../sandbox/kubernetes/objects.ts'
import { rollOut } from '../../sandbox/rollout.ts'
import { startWorld, type World } from '../../sandbox/world.ts'
import { startBrowser, type Browser } from './browser.ts'
import { startFakeAgent } from './fake-agent.ts'
import { addSilentGateway } from './silent-gateway.ts'
import { sceneOf } from './snapshots.ts'

// `npm run pictures` makes pictures of the dashboard in every situation in which an operator opens it. People check them by eye.

const HELP = `npm run pictures -- [--only NAME]… [--out FOLDER]

Opens the dashboard in Chromium (CHROMIUM=/path, else /usr/bin/chromium) in each situation, and writes a PNG of each and an
index.md with the question that it answers. The agent is real where the sandbox can play the situation, else a snapshot.

  --only NAME   only this picture; may be repeated
  --out FOLDER  where they go (dist/pictures)
  --list        print the names
`

interface Situation {
  /** The question of an operator that the picture must answer. */
  readonly answers: string
  readonly take: (browser: Browser, to: string) => Promise<void>
}

type Look = NonNullable<Parameters<Browser['open']>[1]> & { readonly act?: (page: Page) => Promise<void> }

/** Returns a function that takes a picture of a snapshot, with a fake agent. */
const shown =
  (snapshot: () => Snapshot, { act, ...look }: Look = {}): Situation['take'] =>
  async (browser, path) => {
    const agent = await startFakeAgent(snapshot())
    try {
      const { page } = await browser.open(agent.url, look)
      await page.getByRole('heading', { level: 1 }).getByText('Connecting').waitFor({ state: 'detached' })
      await act?.(page)
      await shoot(page, path)
    } finally {
      await agent.close()
    }
  }

async function shoot(page: Page, path: string): Promise<void> {
  await page.screenshot({ path, fullPage: true })
  await page.close()
}

const preStop = (agentUrl: string): Hook => ({
  exec: {
    command: ['sh', '-c', `curl -fsS -m 25 --interface $POD_IP -X POST ${agentUrl}/v1/prestop || sleep 5`]
  }
})

/** Returns a function that takes a picture of a real agent in the sandbox. */
const played =
  (play: (world: World, browser: Browser, path: string) => Promise<void>): Situation['take'] =>
  async (browser, path) => {
    const world = await startWorld({ replicas: 6, gateways: 2, workers: 2, seed: 1, preStop })
    try {
      await world.startAgent()
      await play(world, browser, path)
    } finally {
      await world.close()
    }
  }

const open = async (browser: Browser, world: World) => {
  const { page } = await browser.open(world.agentUrl)
  await headline(page, 'All is well.')
  return page
}
const headline = (page: Page, text: string | RegExp) =>
  page.getByRole('heading', { level: 1 }).getByText(text).waitFor()
const roll = ({ kubernetes, kubelet }: World) =>
  rollOut({ store: kubernetes.store, kubelet, timeoutMs: 60_000 })
const rolled = async (browser: Browser, world: World) => {
  const page = await open(browser, world)
  await roll(world)
  await page.getByText('6 drains', { exact: true }).waitFor()
  return page
}

const scene = (differs = {}): Snapshot => {
  const one = sceneOf({ now: Date.now(), live: 3, past: 60, holders: 40, ...differs })
  return { ...one, unproved: one.past.filter(({ verdict }) => verdict?.kind === 'waiting') }
}
const calm = (): Snapshot => {
  const one = scene({ live: 0, past: 39, holders: 3 })
  return {
    ...one,
    gateways: one.gateways.map(gateway => ({
      ...gateway,
      workers: gateway.workers.map(worker => ({ ...worker, revision: 4115 }))
    })),
    inventory: {
      ...one.inventory,
      hooks: { routed: 14, without: [], bare: [], counts: { without: 0, bare: 0 } }
    }
  }
}

/** Returns a snapshot with one ghost, a minute old. */
const withGhost = (): Snapshot => {
  const one = calm()
  const [first, ...others] = one.holders
  const ghosts = [{ node: first!.nodes[0]!, since: one.at - 62_000 }]
  return { ...one, holders: [{ ...first!, ghosts }, ...others] }
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  calm: { answers: 'Is traffic safe right now? Yes: one green line and one sentence.', take: shown(calm) },
  'rolling-update': {
    answers:
      'How does the rollout go, and how long did each pod wait? Real agent, after a rolling update of six pods.',
    take: played(async (world, browser, path) => {
      const page = await rolled(browser, world)
      await page.getByRole('button', { name: 'rollouts' }).click()
      await shoot(page, path)
    })
  },
  '500-at-once': {
    answers:
      'Which of 500 pods are stuck, and on what? The reason stands once, with its number; the least time left is on top.',
    take: shown(() => scene({ live: 500, past: 500, holders: 5000 }))
  },
  'gateway-unreachable': {
    answers: 'Which gateway proves nothing, why, and since when? Real agent; red since the gateway appeared.',
    take: played(async (world, browser, path) => {
      const page = await open(browser, world)
      addSilentGateway(world)
      await headline(page, '2 of 3 gateways prove.')
      await roll(world)
      await shoot(page, path)
    })
  },
  ghost: {
    answers: 'Which upstream lists a node whose pod is gone?',
    take: shown(withGhost, {
      act: page => page.getByRole('button', { name: 'ghosts', exact: true }).click()
    })
  },
  'last-endpoint': {
    answers: 'Why is this hook held so long? It is the last endpoint, held as planned, and not a failure.',
    take: shown(
      () => {
        const one = calm()
        const [drain] = scene({ live: 1 }).drains
        const why = 'upstreams/web-1: it is the last endpoint, and stays in use until another pod serves'
        const kept: Snapshot['drains'][number] = {
          ...drain!,
          why,
          moments: { ...drain!.moments, acceptedAt: null },
          verdict: { ...drain!.verdict!, lastEndpoint: true },
          gateways: [],
          holders: [{ key: 'upstreams/web-1', state: 'kept-last', why: 'it is the only node', at: null }]
        }
        return { ...one, drains: [kept] }
      },
      { act: page => page.locator('[data-lane]').first().click() }
    )
  },
  'agent-restarted': {
    answers: 'Is the agent back, and what does it still know? Real agent, closed and started again.',
    take: async (browser, path) => {
      const world = await startWorld({ replicas: 6, gateways: 2, workers: 2, seed: 1, preStop })
      try {
        const agent = await world.startAgent()
        const page = await rolled(browser, world)
        await agent.close()
        await headline(page, 'The agent is not reached.')
        await world.startAgent()
        await headline(page, 'All is well.')
        await page.getByText('1 routed workload', { exact: true }).waitFor()
        await shoot(page, path)
      } finally {
        await world.close()
      }
    }
  },
  'two-agents': {
    answers: 'Which agent do I look at, who leads, and is the other one there?',
    take: shown(() => {
      const one = calm()
      const [self] = one.agents
      const other = {
        ...self!,
        id: 'b',
        name: 'apisix-drain-1',
        address: '10.0.8.2:8080',
        link: 'live' as const,
        leads: !self!.leads
      }
      return { ...one, agents: [self!, other] }
    })
  },
  phone: { answers: 'The same on a phone, 390 px wide.', take: shown(scene, { width: 390, height: 844 }) },
  dark: {
    answers: 'The same in the dark, with a drain opened: every step, and how to check it by hand.',
    take: shown(scene, { scheme: 'dark', act: page => page.locator('[data-lane]').nth(5).click() })
  },
  'zoom-200': {
    answers: 'The same at 200 % on a screen of 1440 px: nothing scrolls sideways.',
    take: shown(scene, { width: 720, height: 500 })
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      out: { type: 'string', default: 'dist/pictures' },
      list: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' }
    }
  })
  const names = Object.keys(SITUATIONS)
  if (values.help || values.list) {
    console.log(values.help ? HELP : names.join('\n'))
    return 0
  }
  const wrong = (values.only ?? []).filter(name => !names.includes(name))
  if (wrong.length > 0) {
    console.error(`no such picture: ${wrong.join(', ')}. There are: ${names.join(', ')}`)
    return 2
  }
  const out = resolve(values.out)
  mkdirSync(out, { recursive: true })
  const browser = await startBrowser()
  const index = ['# The dashboard in each situation', '']
  let failed = 0
  try {
    for (const [name, { answers, take }] of Object.entries(SITUATIONS)) {
      if (values.only && !values.only.includes(name)) continue
      try {
        await take(browser, join(out, `${name}.png`))
        index.push(`## ${name}`, '', answers, '', `![${name}](${name}.png)`, '')
        console.log(`${name}.png  ${answers}`)
      } catch (error) {
        failed += 1
        console.error(`${name}: ${(error as Error).message}`)
      }
    }
  } finally {
    await browser.close()
  }
  writeFileSync(join(out, 'index.md'), index.join('\n'))
  console.log(`in ${out}`)
  return failed > 0 ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`${(error as Error).message}\nEvery option: npm run pictures -- --help`)
  process.exitCode = 2
}
