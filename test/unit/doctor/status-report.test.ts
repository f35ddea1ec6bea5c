import { expect } from 'chai'
import { formatStatus, statusOf } from '../../../agent/doctor/status-report.ts'
import { sceneOf } from '../../dashboard/snapshots.ts'

const NOW = 1_800_000_000_000
const scene = sceneOf({ now: NOW, live: 2, past: 3, holders: 8 })
const quiet = sceneOf({ now: NOW, live: 0, past: 0, holders: 0 })

describe('apisix-drain status', () => {
  it('prints the headline of the page, and no empty table', () => {
    const text = formatStatus(statusOf(quiet))
    expect(text).to.match(
      /^All is well\.\n3 gateways · no hook waits\nIn the last hour, no pod ended\.\n\nagent \S+ · /
    )
    expect(text).to.contain('GATEWAY   STATE  EVIDENCE  WORKERS  REVISION  BEHIND  ANSWERED')
    expect(text).to.not.contain('WAITS FOR')
    expect(text).to.not.contain('UPSTREAM')
  })

  it('prints each gateway with the revision of its last worker, and how far that is behind', () => {
    const rows = statusOf(scene).gateways.map(({ name, workers, revision, behind }) => [
      name,
      workers,
      revision,
      behind
    ])
    expect(rows).to.deep.equal([
      ['apisix-0', 4, 4115, 0],
      ['apisix-1', 4, 4115, 0],
      ['apisix-2', 4, 4113, 2]
    ])
    expect(formatStatus(statusOf(scene))).to.match(/^apisix-2 +ready +barrier +4 +4113 +2 +200 ms ago$/m)
  })

  it('prints why each pod waits and how long it can, the shortest time first', () => {
    const { pods } = statusOf(scene)
    expect(pods.map(({ waitsFor }) => waitsFor)).to.deep.equal([
      'apisix-2: 2 requests are in flight',
      'apisix-2: 2 requests are in flight'
    ])
    const text = formatStatus(statusOf(scene))
    expect(text).to.match(/^shop\/\S+ +waiting +2\d(\.\d)? s +\d +apisix-2: 2 requests are in flight$/m)
    const [first, second] = pods
    expect(first!.deadline).to.be.at.most(second!.deadline)
  })

  it('prints the two lags of the last hour, with the number of pods (E4)', () => {
    const text = formatStatus(statusOf(scene))
    expect(text).to.match(/^out +3 +\d+ ms +\d+ ms +\d+ ms$/m)
    expect(text).to.match(/^in +2 +\d.* m?s$/m)
  })

  it('prints which upstreams differ from Kubernetes, with their owner, and whose turn it is', () => {
    const { holders } = sceneOf({ now: NOW, live: 0, past: 0, holders: 12 })
    const report = statusOf({ ...scene, holders })
    const text = formatStatus(report)
    expect(text).to.match(
      /^upstreams\/web-7 +unknown +95 s +no node that serves \(95 s\), successors: 10\.8\.9\.7:8080$/m
    )
    expect(text).to.match(
      /^pay\/web-11 \(upstreams\/web-11\) +unknown +4 s +apisix-2: a worker has applied revision 4113, and not 4115 \(4 s\)$/m
    )
    expect(report.upstreams[0]).to.include({
      ownerSince: NOW - 12_000,
      difference: 'missing: 10.10.8.7:8080 (12 s)'
    })
  })

  it('prints the answers to hooks that it knows, and who gave them', () => {
    const pod = { namespace: 'shop', name: 'web-1', uid: 'u' }
    const ack = { pod, elapsedMs: 40, status: 200, result: 'drained', evidence: 'barrier', why: '' } as const
    const text = formatStatus(statusOf({ ...quiet, acks: [{ at: quiet.at - 7000, by: 'agent-b', ack }] }))
    expect(text).to.match(/^shop\/web-1 +200 +drained +barrier +40 ms +agent-b +7 s/m)
  })
})
