import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { sideBySide } from '../build/side-by-side.ts'

const RANGE = { SYNC_POD_RANGES: '127.0.0.0/8', GHOSTS_AFTER: '1s' }
const PAGE = { SERVE_DASHBOARD_ENABLED: 'true', SERVE_DASHBOARD_AUTH: 'none' }

describe('feature: ghosts', () => {
  const test = sideBySide()
  const owner = { labels: { 'managed-by': 'apisix-ingress-controller' } }

  test('a node whose pod has ended, or whose address no pod has had for a while, is shown and left alone', async start => {
    const rig = await start({ config: { ...RANGE, ...PAGE } })
    const live = rig.pod('web-1')
    const reused = rig.pod('web-2', { ip: '127.9.9.8' })
    rig.service('web', [live])
    rig.put('upstreams', 'web', {
      type: 'roundrobin',
      ...owner,
      nodes: { [live.node]: 1, [reused.node]: 1, '127.9.9.9:80': 1 }
    })
    const shown = async () => {
      const { holders } = await rig.agent.state()
      return holders.find(({ key }) => key === 'upstreams/web')?.ghosts.map(({ node }) => node)
    }
    await until('it is shown', async () => (await shown())?.length === 1)
    expect(await shown()).to.deep.equal(['127.9.9.9:80'])
    const old = rig.pod('web-3')
    const nodes = [live, old].map(({ ip: host, port }) => ({ host, port, weight: 1 }))
    rig.put('upstreams', 'web', { type: 'roundrobin', ...owner, nodes })
    rig.gone(old)
    await until('a pod has ended', async () => (await shown())?.join() === old.node)
    expect(rig.writes).to.deep.equal([])
  })
})
