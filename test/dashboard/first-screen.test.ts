import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { parse } from 'yaml'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { SHOTS } from './browser.ts'
import { sceneOf } from './snapshots.ts'
import { createStage } from './stage.ts'

// What a person on call reads without scrolling: only texts inside of the first 1440 x 900 pixels count.

interface Answers {
  readonly safe: readonly [level: string, head: string]
  readonly behind: readonly string[]
  readonly stuck?: readonly string[]
}

const at = new URL('first-screen.yaml', import.meta.url)
const EXPECTED = parse(readFileSync(at, 'utf8')) as Readonly<Record<string, Answers>>

describe('dashboard, its first screen', function () {
  this.timeout(60_000)
  const stage = createStage()
  const now = Date.now()
  const made = sceneOf({ now, live: 1, past: 60, holders: 40 })
  const calm = {
    ...made,
    agent: { ...made.agent, reach: { ...made.agent.reach, barrier: { scheme: 'http', port: 9080 } } },
    drains: [],
    arrivals: made.arrivals.slice(1),
    holders: made.holders.map(one => ({ ...one, ghosts: [], missing: [], behind: null, onSuccessors: null }))
  }
  const web = {
    ...calm.holders[1]!,
    key: 'upstreams/b41c9837',
    service: 'shop/web',
    owner: 'ingress-controller-2'
  }
  const holding = (differs: object) => ({
    holders: [{ ...web, ...differs } as Snapshot['holders'][number], ...calm.holders]
  })
  const since = (ms: number) => ({ node: '10.4.1.7:8080', since: now - ms })
  const late = (ms: number) => ({
    missing: [{ node: '10.0.0.9:80', since: now - ms }],
    behind: { since: now - ms, owner: now - ms, cause: 'owner', gateways: [] }
  })
  const gateway = (differs: Partial<Snapshot['gateways'][number]>) => ({
    gateways: [...calm.gateways.slice(0, 2), { ...calm.gateways[2]!, ...differs }]
  })
  const silent = { lastSuccessAt: now - 360_000, lastAttemptAt: now, problem: 'connect ECONNREFUSED' }
  const stuck = (why: string, sealedAt?: number, uid = 'stuck'): Snapshot['drains'][number] => {
    const [drain] = made.drains
    return {
      ...drain!,
      uid,
      moments: { ...drain!.moments, decidedAt: null, seenAt: now - 12_000 },
      gateways: [{ name: 'apisix-2', grade: undefined, at: undefined, sealedAt, why }]
    }
  }
  const { hooks } = calm.inventory
  const unserved = { ...late(3000), onSuccessors: { since: now - 3000, nodes: [] } }
  const lost = {
    ...since(44_000),
    gateway: 'apisix-2',
    why: 'a worker has applied revision 4113, and not 4115',
    evidence: 'barrier'
  }
  const without = [{ name: 'shop/Deployment/web', pods: 2 }]
  const down = 'no connection to the barrier'

  const STATES: Readonly<Record<string, Partial<Snapshot>>> = {
    'all is well': {},
    'a gateway that does not answer, and a pod that waits for it': {
      ...gateway({ available: null, why: silent.problem, barrier: silent }),
      drains: [stuck(down)]
    },
    'a gateway that cannot prove': gateway({ available: 'observed', why: 'its worker 3 is unfit' }),
    'a controller that is dead for 20 s (E2)': holding(late(23_000)),
    'a controller that is dead through many rollouts': holding(late(620_000)),
    'an upstream that lists only ghosts': holding({ nodes: [since(0).node], ghosts: [since(8000)] }),
    'a StatefulSet of one, which nobody replaces until it is back': holding(unserved),
    'a worker that has lost its watch of etcd': {
      ...holding({ behind: { since: now - 44_000, owner: null, cause: 'gateways', gateways: [lost] } }),
      arrivals: [
        {
          ...calm.arrivals[0]!,
          readyAt: now - 44_000,
          routedAt: null,
          why: 'apisix-2: a worker has applied revision 4113'
        }
      ]
    },
    'a dead watch': {
      watches: [{ ...calm.watches[0]!, state: 'stale', problem: 'the connection was closed' }]
    },
    'a pod with a request that does not end': { drains: [stuck('1 request is in flight', now - 11_000)] },
    '500 pods at once, which wait for the same': {
      drains: Array.from({ length: 500 }, (_, i) => stuck(down, undefined, `u${i}`))
    },
    'an agent that cannot vouch': {
      agent: { ...calm.agent, vouch: { ok: false, why: 'no gateway is known' } },
      gateways: []
    },
    'a workload with a sleep of its own, and no hook': {
      inventory: { ...calm.inventory, hooks: { ...hooks, without, counts: { ...hooks.counts, without: 1 } } }
    }
  }

  it('has an answer for each state', () => expect(Object.keys(STATES)).to.deep.equal(Object.keys(EXPECTED)))
  for (const [state, { safe, behind, stuck = [] }] of Object.entries(EXPECTED))
    it(`answers the three questions: ${state}`, async () => {
      const { url } = await stage.start({ ...calm, ...STATES[state] })
      const { page, complaints } = await stage.open(url, { width: 1440, height: 900 })
      await page.getByRole('region', { name: 'Holders' }).waitFor()
      const texts = await textsOnScreen(page)
      await page.screenshot({ path: join(SHOTS, `first, ${state}.png`) })
      const told = texts.join('\n')
      expect(await page.locator('header').getAttribute('class')).to.equal(`top ${safe[0]}`)
      for (const one of [safe[1], ...behind, ...stuck]) expect(told, one).to.match(new RegExp(one, 'm'))
      expect(/^for \d+ s: |^.*: .* in all/m.test(told), `a stuck pod in ${told}`).to.equal(stuck.length > 0)
      expect(complaints).to.deep.equal([])
      await page.close()
    })
})

/** The texts of elements whose box is inside of the window, and of the box that scrolls them. */
const textsOnScreen = (page: Page) =>
  page.evaluate<string[]>(`
    [...document.querySelectorAll('body *')].flatMap(at => {
      const { left, right, top, bottom, width } = at.getBoundingClientRect()
      const end = Math.min(innerHeight, at.closest('.scroll')?.getBoundingClientRect().bottom ?? innerHeight)
      const hasText = [...at.childNodes].some(node => node.nodeType === 3 && node.data.trim() !== '')
      const isSeen = width > 1 && left >= 0 && top >= 0 && right <= innerWidth && bottom <= end
      return hasText && isSeen && !at.closest('.hidden') ? [(at.closest('.cut') ?? at).textContent.trim()] : []
    })
  `)
