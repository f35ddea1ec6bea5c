import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import type { PodUid } from '../../agent/rules/drain/facts.ts'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { momentsOf } from '../../agent/report/snapshot/drain-view.ts'
import { until } from '../build/apisix.ts'
import { get } from '../build/load.ts'
import type { Rig } from '../build/rig.ts'
import { serving } from '../build/pair.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** Longer than a gateway that proves nothing is waited for. */
const shown = () => setTimeout(2500)

describe('feature: a gateway that reported requests during a drain', () => {
  const test = sideBySide({ barrier: true })

  /** Makes a pod with a request in flight to it, through the only gateway. The caller ends the pod. */
  async function busy(rig: Rig, graceSeconds = 20) {
    const [gateway] = rig.gateways as [Gateway]
    const [old, fresh] = [rig.pod('web-1', { graceSeconds }), rig.pod('web-2')]
    const [backend] = await serving(rig, old)
    const slow = get(`${gateway.urls.proxy}/?hold`).catch(() => undefined)
    await until('a slow request is at the pod', () => backend.open > 0)
    rig.upstream('web', [old, fresh])
    await rig.settled()
    return { gateway, old, backend, slow }
  }
  const end = (rig: Rig, old: Awaited<ReturnType<typeof busy>>['old']) => {
    rig.end(old)
    const state = { answered: false }
    const hook = rig.hook(old).finally(() => (state.answered = true))
    const drain = () => rig.agent.loop.drains().get(old.uid as PodUid)
    const why = () => {
      const now = drain()
      return now === undefined || now.phase === 'undone' ? '' : now.verdict.why
    }
    return { hook, state, why }
  }
  /** Ends such a pod, and waits until its gateway has reported the request. */
  const saidBusy = async (rig: Rig, graceSeconds?: number) => {
    const found = await busy(rig, graceSeconds)
    const ended = end(rig, found.old)
    await until('it said busy', () => ended.why().includes('1 in flight'))
    return { ...found, ...ended }
  }

  test('is not released while its barrier is unreachable, and is released by its own 0 afterwards', async start => {
    const rig = await start()
    const { gateway, backend, slow, hook, state, why } = await saidBusy(rig)
    await gateway.partition({ barrier: 'refused' })
    await until('its barrier is not reached', () => why().includes('no connection'))
    await shown()
    expect(state.answered).to.equal(false)
    await gateway.partition({})
    await until('it says busy again', () => why().includes('1 in flight'))
    expect([state.answered, backend.open]).to.deep.equal([false, 1])
    backend.release()
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    expect(await slow).to.deep.equal({ status: 200, body: 'web-1' })
  })

  test('its lag ends at the seal; the end of the request in flight is shown apart (D3)', async start => {
    const rig = await start()
    const { old, backend, hook } = await saidBusy(rig)
    const moments = () => {
      const drain = rig.agent.loop.drains().get(old.uid as PodUid)
      return drain && momentsOf(drain, rig.agent.loop.status(drain.uid))
    }
    await rig.entryIs('sealed', old)
    await until('the agent knows', () => moments()?.sealedAt != null)
    expect(moments()).to.include({ confirmedAt: null, idleAt: null })
    const heldUntil = Date.now()
    backend.release()
    expect((await hook).body).to.include({ evidence: 'barrier' })
    expect(moments()?.sealedAt).to.be.at.most(heldUntil)
    expect(moments()?.idleAt).to.be.at.least(heldUntil)
  })

  for (const when of ['in mid-drain', 'from the beginning'] as const)
    test(`is not released when its plugin calls itself unfit (${when})`, async start => {
      const rig = await start()
      const { gateway, old, backend, slow } = await busy(rig)
      const [worker] = gateway.workers
      const unfit = () => gateway.barrier?.setUnfit(worker!.pid, 'a second nginx serves')
      if (when === 'from the beginning') unfit()
      const { hook, state, why } = end(rig, old)
      if (when === 'in mid-drain') {
        await until('it said busy', () => why().includes('1 in flight'))
        unfit()
      }
      await until('it is seen as unfit', () => why().includes('does not fit'))
      await shown()
      expect([state.answered, backend.open]).to.deep.equal([false, 1])
      gateway.barrier?.setUnfit(worker!.pid, '')
      backend.release()
      expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
      expect(await slow).to.deep.equal({ status: 200, body: 'web-1' })
    })

  test('that restarts is released by the answer of the new instance', async start => {
    const rig = await start()
    const { gateway, slow, hook } = await saidBusy(rig)
    await gateway.restart()
    expect((await hook).body).to.include({ result: 'drained', evidence: 'barrier' })
    await slow
  })

  test('holds the hook until its deadline if it never answers again', async start => {
    const rig = await start()
    const { gateway, backend, slow, hook } = await saidBusy(rig, 10)
    await gateway.partition({ barrier: 'silent' })
    const { body } = await hook
    expect(body).to.include({ result: 'unproved' })
    // The reason is the last report, or its absence once the barrier's timeout is over.
    expect(body.why).to.match(/1 in flight|BARRIER|no answer|no connection|time/)
    backend.release()
    await slow
  })

  test('one that does not answer from the beginning proves nothing', async start => {
    const rig = await start()
    const { gateway, old, backend, slow } = await busy(rig)
    backend.release()
    await slow
    await gateway.partition({ barrier: 'refused' })
    const { hook } = end(rig, old)
    expect((await hook).body).to.include({ result: 'unproved', evidence: 'none' })
  })
})
