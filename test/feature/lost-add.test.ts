import { expect } from 'chai'
import { systemClock } from '../../agent/clock.ts'
import { CodedError } from '../../agent/errors.ts'
import { holdersOf } from '../../agent/gateway/holders.ts'
import { createWriter } from '../../agent/gateway/writer.ts'
import { createAmends } from '../../agent/loop/amends.ts'
import { expectedNodes } from '../../agent/loop/expected.ts'
import { silent, startAdmin } from '../build/apisix.ts'
import { pod, terminating } from '../build/pod.ts'

// The Admin API has no precondition: what an owner PUTs between our GET and our PATCH of an array is overwritten. What makes it
// good is the second opinion of the EndpointSlices, joined here to the writer as agent/run.ts joins them.

const NOW = 1_000_000
const array = (...hosts: string[]) => hosts.map(host => ({ host, port: 80, weight: 100 }))

describe('a replacement that its owner adds in the middle of our write', () => {
  let apisix: Awaited<ReturnType<typeof startAdmin>>
  beforeEach(async () => (apisix = await startAdmin()))
  afterEach(() => apisix.close())

  const ending = pod('old-1', { ips: ['10.0.0.1'], ...terminating(NOW) })
  const staying = pod('old-2', { ips: ['10.0.0.2'], startedAt: NOW - 3_600_000 })
  const added = pod('new-1', { ips: ['10.0.0.3'], startedAt: NOW - 2000 })
  const pods = [ending, staying, added]
  const cluster = {
    pods: {
      get: (uid: string) => pods.find(one => one.uid === uid),
      byIp: (ip: string) => pods.filter(({ ips }) => ips.includes(ip))
    },
    slices: {
      servicesOf: () => [{ namespace: 'shop', name: 'web' }],
      // The slice is behind: it does not know yet that old-1 ends.
      serving: () =>
        pods.map(({ uid, ips }) => ({
          address: ips[0],
          podUid: uid,
          ready: true,
          serving: true,
          terminating: false
        }))
    }
  } as never

  for (const secondOpinion of [true, false])
    it(secondOpinion ? 'is put back' : 'would be lost without a second opinion', async () => {
      const value = (...hosts: string[]) => ({ type: 'roundrobin', nodes: array(...hosts) })
      apisix.put('upstreams', 'web', value('10.0.0.1', '10.0.0.2'))
      let owner: (() => void) | undefined = () =>
        apisix.put('upstreams', 'web', value('10.0.0.1', '10.0.0.2', '10.0.0.3'))
      const writer = createWriter({
        admin: {
          ...apisix.client,
          patch: (...all) => {
            owner?.()
            owner = undefined
            return apisix.client.patch(...all)
          }
        },
        inventory: { learn() {}, forget() {} },
        clock: systemClock,
        log: silent,
        ...(secondOpinion && { expected: holder => expectedNodes(cluster, holder, NOW) })
      })
      const object = {
        resource: 'upstreams',
        id: 'web',
        value: apisix.value('upstreams', 'web') ?? {},
        revision: 0
      }
      const [holder] = holdersOf({ ...object, resource: 'upstreams' })
      writer.submit({
        kind: 'remove',
        holder: holder!,
        nodes: [{ key: '10.0.0.1:80', uid: ending.uid }]
      })
      await writer.idle()
      await writer.stop()
      const left = secondOpinion ? array('10.0.0.2', '10.0.0.3') : array('10.0.0.2')
      expect(apisix.nodes('web')).to.deep.equal(left)
    })

  for (const looksAgain of [true, false])
    it(`${looksAgain ? 'is put back' : 'would be lost'} where our write was cut off and is applied after a later one`, async () => {
      const value = (...hosts: string[]) => ({ type: 'roundrobin', nodes: array(...hosts) })
      apisix.put('upstreams', 'web', value('10.0.0.1', '10.0.0.2'))
      const amends = createAmends({
        expected: holder => expectedNodes(cluster, holder, NOW),
        staysAt: node => !node.startsWith('10.0.0.1'),
        isSurelyEnding: () => true,
        isCurrent: () => true,
        now: () => systemClock.now()
      })
      let late: (() => Promise<unknown>) | undefined
      const writer = createWriter({
        admin: {
          ...apisix.client,
          patch: (...all) => {
            if (late) return apisix.client.patch(...all)
            late = () => apisix.client.patch(...all)
            return Promise.reject(new CodedError('ADMIN_TIMEOUT', 'PATCH upstreams/web'))
          }
        },
        inventory: { learn() {}, forget() {} },
        clock: systemClock,
        log: silent,
        wrote: one => amends.wrote(one),
        wishes: (target, found) => ({ edits: amends.wishes(target, found) })
      })
      const [holder] = holdersOf({
        resource: 'upstreams',
        id: 'web',
        value: apisix.value('upstreams', 'web') ?? {},
        revision: 0
      })
      writer.submit({ kind: 'remove', holder: holder!, nodes: [{ key: '10.0.0.1:80', uid: ending.uid }] })
      await writer.idle()
      apisix.put('upstreams', 'web', value('10.0.0.2', '10.0.0.3'))
      await late?.()
      expect(apisix.nodes('web')).to.deep.equal(array('10.0.0.2'))
      if (looksAgain) for (const target of amends.targets(systemClock.now() + 1000)) writer.tend(target)
      await writer.idle()
      await writer.stop()
      expect(apisix.nodes('web')).to.deep.equal(
        looksAgain ? array('10.0.0.2', '10.0.0.3') : array('10.0.0.2')
      )
    })
})
