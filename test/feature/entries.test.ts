import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { pair } from '../build/pair.ts'
import { readSecret } from '../../agent/hook/app.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'
import { eventually } from '../plugin/eventually.ts'

/** Asks as a gateway does when it starts. */
const ask = async (
  { agent, barrierToken }: Rig,
  differs: { headers?: Record<string, string>; wire?: number } = {}
) => {
  const { headers = { authorization: `Bearer ${readSecret(barrierToken)}` }, wire = 1 } = differs
  return await fetch(`http://127.0.0.1:${agent.port}/v${wire}/barrier-entries`, { headers })
}

describe('feature: the entries that a gateway fetches when it starts', () => {
  const test = sideBySide({ barrier: true })

  test('are the entries that every gateway holds', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    expect((await rig.drain(old)).body).to.include({ result: 'drained' })
    const { entries } = (await (await ask(rig)).json()) as { entries: object[] }
    expect(entries).to.have.lengthOf(1)
    expect(entries[0]).to.include({ uid: old.uid, ip: old.ip, state: 'sealed' })
    expect((await ask(rig, { headers: {} })).status).to.equal(401)
    expect((await ask(rig, { wire: 2 })).status).to.equal(409)
  })

  // The kubelet called the hook at the other agent, and the new agent cannot learn of this call.
  test('are not given while pods may end unseen', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    const other = rig.agent
    await rig.readyAgent()
    await eventually('it knows all', async () => (await ask(rig)).status === 200)
    const undo = rig.kubernetes.faults.hang({ path: /\/pods/, watch: true })
    rig.kubernetes.faults.dropConnections()
    await eventually('its watch is not live', async () => (await ask(rig)).status === 503)
    expect((await rig.drain(old, '', undefined, other)).body).to.include({ evidence: 'barrier' })
    const refused = await ask(rig)
    expect(refused.status).to.equal(503)
    expect(await refused.json())
      .to.have.property('why')
      .that.includes('the watch of pods is')
    undo()
    rig.kubernetes.faults.dropConnections()
    await eventually('its watch is live', async () => (await ask(rig)).status === 200)
    const { entries } = (await (await ask(rig)).json()) as { entries: { uid: string }[] }
    expect(entries.map(({ uid }) => uid)).to.deep.equal([old.uid])
  })
})

describe('feature: an entry that no agent of today has put', () => {
  const test = sideBySide({ barrier: true })
  test('is removed if its address is by now that of a pod that started later, and else stays', async start => {
    const rig = await start()
    const { entries } = rig.gateways[0]!.barrier!
    const put = (ip: string, state: 'draining' | 'sealed') =>
      entries.put({ uid: `of-${ip}`, ip, port: undefined, state, ttl: 120 })
    const older = rig.pod('web-0', { startedAt: new Date(Date.now() - 60_000).toISOString() })
    const startedAt = new Date(Date.now() + 60_000).toISOString()
    const [owner, last] = [rig.pod('web-1', { startedAt }), rig.pod('web-2', { startedAt })]
    put(older.ip, 'sealed')
    put(owner.ip, 'sealed')
    put(last.ip, 'draining')
    await until('the later ones are removed', () => entries.size === 1)
    expect(entries.look(older.ip, 80), 'a later drain of another agent').to.equal('sealed')
  })
})

describe('feature: an entry that a gateway has lost', () => {
  const test = sideBySide({ barrier: true, gateways: 2 })
  /** A second after the next read of the state, which comes four times a second. */
  const BACK_MS = 1250

  test('is put again within a second in every phase, even if another entry hides the loss from the count', async start => {
    const rig = await start()
    const [old] = await pair(rig)
    const { entries } = rig.gateways[0]!.barrier!
    let n = 0
    const lose = async (when: string) => {
      entries.remove(new Set([old.uid]))
      entries.put({ uid: `other-${n++}`, ip: rig.address(), port: undefined, state: 'sealed', ttl: 60 })
      const isBack = () => entries.look(old.ip, old.port) === 'sealed'
      await until(`it is back after ${when}`, isBack, BACK_MS)
    }
    expect((await rig.drain(old)).body).to.include({ result: 'drained', evidence: 'barrier' })
    await lose('the answer')
    rig.gone(old)
    await until('the drain is over', () => rig.agent.loop.drains().size === 0)
    await lose('the drain')
  })
})
