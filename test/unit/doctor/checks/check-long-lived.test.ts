import { expect } from 'chai'
import { systemClock } from '../../../../agent/base/clock.ts'
import type { LongLivedAt } from '../../../../agent/gateway/apisix/barrier-wire.ts'
import { checkLongLived } from '../../../../agent/doctor/checks/check-pods.ts'
import { staticGateway } from '../../../../agent/kubernetes/facts/gateway-fact.ts'
import { toPodFact } from '../../../../agent/kubernetes/facts/pod-fact.ts'
import { createPodStore } from '../../../../agent/kubernetes/facts/pod-store.ts'

const WAIT = 'apisix-drain.io/long-lived-wait'

interface Raw {
  readonly ip: string
  readonly owner: string
  readonly grace?: number
  readonly annotations?: Readonly<Record<string, string>>
}

const raw = ({ ip, owner, grace = 30, annotations }: Raw) => ({
  metadata: {
    uid: ip,
    name: `${owner}-${ip}`,
    namespace: 'shop',
    annotations,
    ownerReferences: [{ kind: 'StatefulSet', name: owner, controller: true }]
  },
  spec: { terminationGracePeriodSeconds: grace, containers: [] },
  status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] }
})

const at = (ip: string, differs: Partial<LongLivedAt> = {}): LongLivedAt => ({
  ip,
  port: 8080,
  upgraded: 0,
  sse: 0,
  streams: 0,
  oldest: 3,
  ...differs
})

describe('doctor: long-lived connections', () => {
  const run = async (
    pods: readonly Raw[],
    read: (host: string) => Promise<readonly LongLivedAt[]>,
    longLivedMs = 0
  ) => {
    const { store, sink } = createPodStore(systemClock)
    for (const pod of pods.map(raw).map(toPodFact)) if (pod) sink.set(pod)
    const gateways = ['192.0.2.1', '192.0.2.2'].map(host => staticGateway({ name: host, host }))
    const check = checkLongLived(
      { list: async () => gateways, readLongLived: read },
      { pods: async () => ({ store, hooked: [] }) },
      { reserveMs: 7000, longLivedMs }
    )
    const findings = await check(AbortSignal.timeout(5000))
    for (const { level, change } of findings) expect(change === '').to.equal(level === 'ok')
    return findings.map(({ level, what }) => `${level} ${what}`)
  }
  const CHAT = { ip: '10.0.0.1', owner: 'chat' }

  it('says that there are none', async () => {
    expect(await run([CHAT], async () => [])).to.deep.equal([
      'ok no websocket and no stream is open in the gateways'
    ])
  })

  it('adds up the gateways and the pods of a workload, and names the shortest time', async () => {
    const pods = [CHAT, { ...CHAT, ip: '10.0.0.2', grace: 20 }, { ip: '10.0.0.3', owner: 'web' }]
    const read = async () => [
      at('10.0.0.1', { upgraded: 2 }),
      at('10.0.0.2', { upgraded: 1, streams: 1 }),
      at('10.0.0.3', { sse: 1 }),
      at('10.0.0.9', { sse: 5 })
    ]
    expect(await run(pods, read)).to.deep.equal([
      'ok shop/StatefulSet/chat: 6 websockets, 2 streams; its pods have 20s to end them at SIGTERM',
      'ok shop/StatefulSet/web: 2 event streams; its pods have 30s to end them at SIGTERM'
    ])
  })

  it('warns if the hook waits for them for so long that only the reserve is left', async () => {
    const annotations = { [WAIT]: '1h' }
    const read = async (host: string) => (host.endsWith('1') ? [at('10.0.0.1', { upgraded: 1 })] : [])
    const warned = ['warn shop/StatefulSet/chat: 1 websocket; its pods have 7s to end them at SIGTERM']
    expect(await run([{ ...CHAT, annotations }], read)).to.deep.equal(warned)
    expect(await run([CHAT], read, 60_000)).to.deep.equal(warned)
    expect(await run([CHAT], read, 10_000)).to.deep.equal([
      'ok shop/StatefulSet/chat: 1 websocket; its pods have 20s to end them at SIGTERM'
    ])
  })

  it('warns if a gateway cannot be asked, and leaves the cause to the check of the barrier', async () => {
    const read = async (host: string) => {
      if (host.endsWith('2')) throw new Error('ECONNREFUSED')
      return []
    }
    expect(await run([CHAT], read)).to.deep.equal([
      'warn the long-lived connections cannot be counted at 1 of 2 gateways'
    ])
  })
})
