import { setTimeout as wait } from 'node:timers/promises'
import type { Barrier } from '../../sandbox/apisix/barrier.ts'
import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import type { Worker } from '../../sandbox/apisix/worker.ts'
import { setClock } from './set-clock.ts'
import { pick, runningGateway, type Break, type Stage } from './stage.ts'

/** From the end of a gateway in a rolling update until it stops, in ms. */
const LEAVING_MS = 300

type Cut = Parameters<Gateway['partition']>[0]

const freeze = (workers: readonly Worker[]) => {
  for (const worker of workers) worker.freeze()
  return () => workers.forEach(worker => worker.thaw())
}

const worker = (stage: Stage, which: number): Worker | undefined =>
  pick(runningGateway(stage, which)?.workers ?? [], which >> 1)

const partition =
  (cut: Cut): Break =>
  async (stage, which) => {
    const gateway = runningGateway(stage, which)
    await gateway?.partition(cut)
    return async () => {
      if (gateway?.running) await gateway.partition({})
    }
  }

/** How far an operator or NTP sets the clock, in ms: much more than the ttl of an entry. */
const STEP_MS = 600_000

/** Calls `change` with the gateway's barrier, and returns it for the end of the fault: a gateway that was restarted since has a new one. */
const barrierOf = (gateway: Gateway | undefined, change: (barrier: Barrier) => void) => {
  const barrier = gateway?.running ? gateway.barrier : undefined
  if (barrier) change(barrier)
  return (back: (barrier: Barrier) => void) => () => {
    if (barrier && gateway?.running && gateway.barrier === barrier) back(barrier)
  }
}

const step =
  (ms: number): Break =>
  (stage, which) => {
    const set = (byMs: number) => (barrier: Barrier) => {
      for (const what of setClock(barrier, byMs)) stage.blame(what)
    }
    return barrierOf(runningGateway(stage, which), set(ms))(set(-ms))
  }

const staying = ({ rig, leaving }: Stage) => rig.gateways.filter(one => one.running && !leaving.has(one))

async function join(stage: Stage): Promise<void> {
  const gateway = await stage.rig.addGateway()
  stage.ownerWrites()
  // In standalone mode a gateway has no routes before its first document. Without one it does not become Ready.
  const routes = () => gateway.running && gateway.workers.every(one => one.config.get('upstreams', 'web'))
  for (let i = 0; i < 100 && !routes(); i++) await wait(50)
  if (routes()) await stage.ready(gateway)
}

/** The gateway finishes its requests, and gets no new ones, until the returned function ends it. */
function leave(stage: Stage, gateway: Gateway | undefined): () => Promise<void> {
  if (!gateway || stage.leaving.has(gateway) || stage.proxies.length < 2) return async () => {}
  stage.leaving.add(gateway)
  stage.rig.gatewayIs(gateway, 'terminating')
  stage.unready(gateway)
  return async () => {
    await gateway.stop()
    stage.rig.gatewayIs(gateway, 'gone')
  }
}

export const GATEWAY_FAULTS = {
  'gateway: frozen': (stage, which) => freeze(runningGateway(stage, which)?.workers ?? []),
  'gateway: one worker frozen': (stage, which) => {
    const one = worker(stage, which)
    return freeze(one ? [one] : [])
  },
  'gateway: one worker deaf': (stage, which) => {
    const one = worker(stage, which)
    one?.loseWatch()
    return () => one?.restoreWatch()
  },
  // The worker dies with requests in flight and open API calls. Another worker replaces it, and its counts are lost.
  'gateway: one worker killed': (stage, which) => {
    const gateway = runningGateway(stage, which)
    gateway?.killWorker((which >> 1) % gateway.workers.length)
    return () => {}
  },
  // The gateway reloads with requests in flight. Meanwhile its plugin reports that it is unfit, but still counts.
  'gateway: reloads': (stage, which) => {
    const gateway = runningGateway(stage, which)
    gateway?.reload()
    return barrierOf(gateway, barrier => (barrier.second = true))(barrier => (barrier.second = false))
  },
  'gateway: clock jumps ahead': step(STEP_MS),
  'gateway: clock jumps back': step(-STEP_MS),
  // Lasts for the whole run: `play` puts a balancer before two gateways, and the agents know only the balancer's address of these.
  'gateway: second behind one address': () => () => {},
  // The gateway gets no request while it is not Ready. After the restart its deny-list is empty until it has fetched the entries.
  'gateway: restarts': async (stage, which) => {
    const gateway = runningGateway(stage, which)
    if (!gateway || stage.leaving.has(gateway)) return () => {}
    stage.unready(gateway)
    await gateway.stop()
    return async () => {
      await gateway.start()
      await stage.ready(gateway)
    }
  },
  'gateway: joins': async stage => {
    const serves = join(stage)
    // `serves` may fail before it is awaited, and that must not count as an unhandled rejection.
    serves.catch(() => {})
    return () => serves
  },
  'gateway: leaves': stage => leave(stage, staying(stage).at(-1)),
  // A rolling update of the gateways: each one leaves once a new one is Ready.
  'gateway: all roll': stage => {
    // In standalone mode the agents' only Admin API is that of the first gateway.
    const old = staying(stage).filter(({ urls }) => urls.admin !== stage.rig.admin.url)
    const rolled = (async () => {
      for (const gateway of old) {
        await join(stage)
        const end = leave(stage, gateway)
        await wait(LEAVING_MS)
        await end()
      }
    })()
    rolled.catch(() => {})
    return () => rolled
  },
  'gateway: cut off, serves on': partition({ control: 'refused', barrier: 'refused' }),
  'gateway: silent, serves on': partition({ control: 'silent', barrier: 'silent' }),
  'gateway: Control API silent': partition({ control: 'silent' }),
  'gateway: Barrier API refuses': partition({ barrier: 'refused' })
} satisfies Readonly<Record<string, Break>>
