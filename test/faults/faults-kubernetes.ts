import { setTimeout as wait } from 'node:timers/promises'
import type { Kubernetes } from '../../sandbox/kubernetes/server.ts'
import type { Break } from './stage.ts'

const AWAY_MS = 1500

/** Resolves when no restart is under way. */
export const isBack = (kubernetes: Kubernetes): Promise<void> => restarts.get(kubernetes) ?? Promise.resolve()

/** The running restart of each server: a server is not restarted twice at the same time. */
const restarts = new WeakMap<Kubernetes, Promise<void>>()

function inTurn(kubernetes: Kubernetes, how: Parameters<Kubernetes['faults']['restart']>[0]): Promise<void> {
  const restart = (restarts.get(kubernetes) ?? Promise.resolve()).then(() => kubernetes.faults.restart(how))
  restarts.set(kubernetes, restart)
  // `restart` may fail before it is awaited, if another process has taken the port. That must not count as an unhandled rejection.
  restart.catch(() => {})
  return restart
}

let forged = 0

export const KUBERNETES_FAULTS = {
  'API server: away': ({ rig }) => {
    const back = inTurn(rig.kubernetes, { downMs: AWAY_MS })
    return () => back
  },
  'API server: restarts': async ({ rig }) => {
    await inTurn(rig.kubernetes, { goAway: true })
    return () => {}
  },
  'API server: 410': ({ rig }) => {
    rig.kubernetes.faults.expireHistory()
    rig.kubernetes.faults.endWatches()
    return () => {}
  },
  'API server: silent watches': ({ rig }) => rig.kubernetes.faults.muteWatches({ newOnes: true }),
  'API server: slow': ({ rig }) => rig.kubernetes.faults.delay(300),
  'API server: stale lists': ({ rig }) => {
    const undo = rig.kubernetes.faults.staleLists()
    rig.kubernetes.faults.endWatches()
    return undo
  },
  'API server: 500': ({ rig }) => rig.kubernetes.faults.answer(500, { watch: false }),
  'API server: 429': ({ rig }) => rig.kubernetes.faults.answer(429, { retryAfterSeconds: 1 }),
  'API server: connections break': ({ rig }) => {
    rig.kubernetes.faults.dropConnections()
    return () => {}
  },
  'API server: half-open': ({ rig }) => rig.kubernetes.faults.freezeConnections({ newOnes: true }),
  'API server: broken events': async ({ rig }) => {
    rig.kubernetes.faults.corruptEvents(3)
    const undo = rig.kubernetes.faults.splitEvents()
    await wait(0)
    return undo
  },
  'API server: clock jumps ahead': ({ moveServerClock }) => {
    moveServerClock(60_000)
    return () => moveServerClock(-60_000)
  },
  // A slice of another namespace gives each pod the address of the next one and one that a list has, and says that it ends.
  'EndpointSlices: forged': ({ rig }) => {
    const { kubernetes, gateways } = rig
    forged += 1
    const [name, elsewhere, all] = [`forged-${forged}`, rig.address(), rig.pods()]
    const isStandalone = gateways[0]?.urls.admin !== undefined
    if (!isStandalone) rig.put('upstreams', name, { type: 'roundrobin', nodes: { [`${elsewhere}:80`]: 1 } })
    const endpoints = all.flatMap(({ namespace, name, uid }, i) =>
      [all[(i + 1) % all.length]?.ip ?? '', elsewhere].map(address => ({
        addresses: [address],
        conditions: { ready: false, serving: false, terminating: true },
        targetRef: { kind: 'Pod', namespace, name, uid }
      }))
    )
    kubernetes.store.create('endpointslices', {
      metadata: { namespace: 'evil', name, labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 80 }],
      endpoints
    })
    return () => {
      kubernetes.store.delete('endpointslices', 'evil', name)
      if (!isStandalone) rig.remove('upstreams', name)
    }
  },
  // Last for the whole run: the pods' grace is the reserve, so their hooks sleep, and the list has a node of a lower priority.
  'pods: short grace': () => () => {},
  'owner: lists a backup': () => () => {},
  // As at a host shutdown or lack of memory: the kubelet calls hooks before the API server knows of the end. `play` makes this fault.
  'kubelet: ends pods by itself': () => () => {},
  'API server: clock jumps back': ({ moveServerClock }) => {
    moveServerClock(-60_000)
    return () => moveServerClock(60_000)
  }
} satisfies Readonly<Record<string, Break>>
