import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import { createRandom } from '../../sandbox/random.ts'
import { until } from '../build/apisix.ts'
import type { HookReply } from '../build/hook.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

type Random = () => number

/** Injects a fault. The returned function ends it. */
type Break = (rig: Rig, random: Random) => Promise<() => unknown> | (() => unknown)

const one = <T>(list: readonly T[], random: Random): T => list[Math.floor(random() * list.length)] as T
const gatewayOf = (rig: Rig, random: Random) =>
  one(
    rig.gateways.filter(({ running }) => running),
    random
  )
const mendGateway = async (gateway: Gateway) => {
  if (gateway.running) await gateway.partition({})
}

const BREAKS: Readonly<Record<string, Break>> = {
  'Admin API 500': rig => rig.admin.faults.inject({ fault: { kind: 'status', status: 500 } }),
  'Admin API hangs': rig => rig.admin.faults.inject({ fault: { kind: 'hang' } }),
  'Admin API closes mid-body': rig => rig.admin.faults.inject({ fault: { kind: 'close-mid-body' } }),
  'Admin API applies and is silent': rig =>
    rig.admin.faults.inject({ fault: { kind: 'applied-but-timed-out' }, method: 'PATCH' }),
  'Admin API refuses connections': async rig => {
    await rig.admin.listener.reach('refused')
    return () => rig.admin.listener.reach('open')
  },
  'a Control API is silent': async (rig, random) => {
    const gateway = gatewayOf(rig, random)
    await gateway.partition({ control: 'silent' })
    return () => mendGateway(gateway)
  },
  'a gateway is cut off': async (rig, random) => {
    const gateway = gatewayOf(rig, random)
    await gateway.partition({ control: 'refused', barrier: 'refused' })
    return () => mendGateway(gateway)
  },
  'a worker is frozen': (rig, random) => {
    const worker = one(gatewayOf(rig, random).workers, random)
    worker.freeze()
    return () => worker.thaw()
  },
  'a worker loses its watch': (rig, random) => {
    const worker = one(gatewayOf(rig, random).workers, random)
    worker.loseWatch()
    return () => worker.restoreWatch()
  },
  'a worker is killed': (rig, random) => {
    gatewayOf(rig, random).killWorker(0)
    return () => {}
  },
  'a gateway is restarted': async (rig, random) => {
    const gateway = gatewayOf(rig, random)
    rig.gatewayIs(gateway, 'not-ready')
    await gateway.stop()
    return async () => {
      await gateway.start()
      rig.gatewayIs(gateway, 'ready')
    }
  },
  'a gateway joins': async rig => {
    await rig.addGateway()
    return () => {}
  },
  'the API server restarts': async (rig, random) => {
    await rig.kubernetes.faults.restart({ downMs: random() * 300 })
    return () => {}
  },
  'connections to the API server break': rig => {
    rig.kubernetes.faults.dropConnections()
    return () => {}
  },
  'watches are silent': rig => rig.kubernetes.faults.muteWatches({ newOnes: true }),
  'the API server answers 500': rig => rig.kubernetes.faults.answer(500, { watch: false }),
  'an owner writes all of it again': rig => {
    rig.upstream('web', rig.pods())
    return () => {}
  }
}

describe('feature: whatever is broken (seeded)', () => {
  const test = sideBySide({ gateways: 2, config: { APISIX_ADMIN_TIMEOUT: '400ms', DRAIN_RESERVE: '1s' } }, 8)

  for (let seed = 1; seed <= 32; seed++) {
    const random = createRandom(seed)
    const drawn = Array.from({ length: 1 + Math.floor(random() * 3) }, () => one(Object.keys(BREAKS), random))
    const names = [...new Set(drawn)]
    const barrier = random() < 0.7

    test(`seed ${seed}${barrier ? ', barrier' : ''}: ${names.join('; ')}`, async start => {
      const rig = await start({ barrier })
      const ending = [1, 2, 3].map(i => rig.pod(`web-1-${i}`, { graceSeconds: 4 }))
      const staying = [1, 2].map(i => rig.pod(`web-2-${i}`))
      for (const pod of [...ending, ...staying]) await rig.serve(pod)
      rig.upstream('web', [...ending, ...staying])
      await rig.settled()
      await until('the agent lists them', () => rig.agent.nodes('upstreams/web') === 5)
      const load = rig.load(25)

      const faults = Promise.all(
        names.map(async name => {
          await wait(random() * 200)
          const mend = await BREAKS[name]!(rig, random)
          await wait(200 + random() * 1200)
          await mend()
        })
      )
      // `faults` may fail before it is awaited, and that must not count as an unhandled rejection.
      faults.catch(() => {})
      const replies: Promise<HookReply>[] = []
      for (const pod of ending) {
        await wait(random() * 150)
        rig.end(pod)
        replies.push(rig.hook(pod))
      }
      const answers = await Promise.all(replies)
      for (const { status, body } of answers) expect(status, JSON.stringify(body)).to.be.oneOf([200, 503])
      await faults
      await load.stop()
      // After any fault, the upstream must list exactly the pods that stay.
      const wanted = staying.map(({ node }) => node).toSorted()
      const settled = () => [...rig.nodes('upstreams/web')].toSorted().join() === wanted.join()
      await until(`only who stays is listed, not ${rig.nodes('upstreams/web').join(' ')}`, settled)
    })
  }
})
