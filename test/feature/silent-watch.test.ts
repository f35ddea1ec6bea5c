import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: the watch falls silent after the ack', () => {
  const test = sideBySide({ barrier: true })

  test('an address that is given out again is the new pod’s: its node stays, its entry is lifted', async start => {
    const rig = await start()
    const [old, other] = [rig.pod('web-0'), rig.pod('web-1')]
    rig.upstream('web', [old, other])
    await rig.settled()
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ evidence: 'barrier' })
    await until('the node is out', () => rig.nodes('upstreams/web').length === 1)

    rig.kubernetes.faults.muteWatches()
    rig.gone(old)
    const next = rig.pod('web-2', { ip: old.ip })
    rig.upstream('web', [next, other])
    // The guard lists the holders, finds the address again, and asks whose it is.
    await until(
      'the entry is lifted',
      () => rig.gateways[0]!.barrier?.entries.look(next.ip, next.port) === 'free'
    )
    expect(rig.nodes('upstreams/web').toSorted()).to.deep.equal([next.node, other.node].toSorted())
    expect(rig.violations()).to.deep.equal([])
  })
})
