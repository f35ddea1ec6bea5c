import { expect } from 'chai'
import { sentenceOf } from '../../agent/dashboard/model/headline.ts'
import type { HolderView, Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import { ranMs, until } from '../build/apisix.ts'
import { sideBySide } from '../build/side-by-side.ts'
import type { Rig } from '../build/rig.ts'

/** The agent reports after 30 s; this is the promised time, in ms. */
const RED_MS = 60_000

describe('feature: how far upstreams are behind Kubernetes', () => {
  const config = { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' }
  const test = sideBySide({ gateways: 2, barrier: true, config })

  const metric = async ({ agent }: Rig, name: string) => {
    const text = await agent.metrics()
    return Number(new RegExp(`^${name.replaceAll(/[{}]/g, String.raw`\$&`)} (\\S+)$`, 'm').exec(text)?.[1])
  }
  /** Returns the first snapshot for which `holds` is true. */
  async function shows(
    rig: Rig,
    what: string,
    holds: (web: HolderView, all: Snapshot) => boolean,
    ms?: number
  ) {
    let found: { readonly web: HolderView; readonly all: Snapshot } | undefined
    const isShown = async () => {
      const all = await rig.agent.state()
      const web = all.holders.find(({ key }) => key === 'upstreams/web')
      if (web && holds(web, all)) found = { web, all }
      return found !== undefined
    }
    await until(what, isShown, ms)
    return found!
  }
  /** Makes two pods. Kubernetes and the upstream list only the first. */
  async function calm(rig: Rig) {
    const [first, second] = [rig.pod('web-0'), rig.pod('web-1')]
    rig.service('web', [first])
    rig.upstream('web', [first])
    await rig.settled()
    await shows(rig, 'calm', web => web.service !== null && web.behind === null)
    return [first, second] as const
  }

  test('an owner that has stopped is red within a minute, and over as soon as every gateway has its write', async start => {
    const rig = await start()
    const [first, second] = await calm(rig)
    rig.service('web', [first, second])
    const changedAt = performance.now()
    const red = await shows(rig, 'red', (_, all) => sentenceOf(all).level === 'bad', RED_MS)
    expect(ranMs(changedAt)).to.be.below(RED_MS)
    expect(sentenceOf(red.all).head).to.match(
      /^shop\/web \(upstreams\/web\) has been behind Kubernetes for \d+ s\.$/
    )
    expect(sentenceOf(red.all).rest).to.match(/^its owner has not written 1 node\./)
    expect(red.web.behind).to.deep.include({ cause: 'owner', gateways: [] })
    expect(await metric(rig, 'apisix_drain_owner_behind_seconds')).to.be.above(30)

    rig.upstream('web', [first, second])
    await shows(rig, 'over', ({ behind }) => behind === null)
    // The text of the metrics may be a second old.
    await until('in metrics too', async () => (await metric(rig, 'apisix_drain_owner_behind_seconds')) === 0)
  })

  test('a gateway that does not apply the write of the owner is named, and the owner is not blamed', async start => {
    const rig = await start()
    const [first, second] = await calm(rig)
    const workers = rig.gateways.flatMap(gateway => gateway.workers)
    for (const worker of workers) worker.loseWatch()
    rig.service('web', [first, second])
    rig.upstream('web', [first, second])
    const { web } = await shows(rig, 'behind', ({ behind }) => (behind?.gateways.length ?? 0) > 0)
    expect(web.behind?.cause).to.equal('gateways')
    expect(web.missing).to.deep.equal([])
    expect(web.behind?.gateways[0]?.why).to.match(/^a worker has applied revision \d+, and not \d+$/)
    expect(
      await metric(rig, `apisix_drain_gateway_behind_seconds{gateway="${web.behind!.gateways[0]!.gateway}"}`)
    ).to.be.above(0)
    for (const worker of workers) worker.restoreWatch()
    await shows(rig, 'over', ({ behind }) => behind === null)
  })
})
