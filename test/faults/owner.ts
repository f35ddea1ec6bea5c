import { standaloneTarget, type AdcTarget } from '../../sandbox/owner/adc-target.ts'
import { arrayOf } from '../build/held-nodes.ts'
import type { TestPod } from '../build/pods.ts'
import type { Rig } from '../build/rig.ts'
import type { Mode, Scenario } from './scenario.ts'

/** The owner of the only upstream, `web`, for each way of running APISIX. */
export interface Owner {
  /** Writes these pods as the nodes. */
  write(pods: readonly TestPod[]): Promise<void>
  /** Adds one pod to the present nodes. */
  add(pod: TestPod): Promise<void>
  /** Gives the pod a place of its own, for requests to `/own/`; `undefined`: removes that place. */
  listAlone(pod: TestPod | undefined): Promise<void>
}

export const HOLDER = 'upstreams/web'
const SERVICE = 'shop/web'

export const isWritten = (mode: Mode): boolean => mode === 'observed' || mode === 'barrier'

/** The interval of the owner's checks of its list, in ms. */
const SYNC_MS = 500

/**
 * Lists nodes again that the agent's write overwrote, between its read and its write (docs/decisions/0024). So does a controller
 * that compares lists at each sync. Returns the function that ends the syncs.
 */
export function startSyncs(rig: Rig, owner: Owner): () => void {
  const timer = setInterval(() => {
    const lost = rig.overwritten()
    for (const pod of rig.pods()) if (lost.includes(pod.node)) void owner.add(pod)
  }, SYNC_MS)
  return () => clearInterval(timer)
}

/** @param backup a node of a lower priority, which stays in the list */
export function ownerOf(
  rig: Rig,
  { mode, form }: Pick<Scenario, 'mode' | 'form'>,
  backup: Backup | undefined
): Owner {
  const nodesOf: NodesOf = pods => [
    ...arrayOf(pods),
    ...(backup ? [{ ...backup, weight: 1, priority: -1 }] : [])
  ]
  if (isWritten(mode)) return byHand(rig, form, backup && nodesOf)
  return mode.startsWith('standalone') ? documents(rig, nodesOf) : discovery(rig)
}

export interface Backup {
  readonly host: string
  readonly port: number
}
type NodesOf = (pods: readonly TestPod[]) => ReturnType<typeof arrayOf>

function byHand(rig: Rig, form: 'map' | 'array', nodesOf: NodesOf | undefined): Owner {
  const put = (pods: readonly TestPod[]) => {
    rig.upstream('web', pods, form)
    if (nodesOf) rig.put('upstreams', 'web', { type: 'roundrobin', nodes: nodesOf(pods) })
  }
  return {
    write: async pods => put(pods),
    async add(pod) {
      const known = rig.pods().filter(({ node }) => rig.nodes(HOLDER).includes(node))
      put([...known.filter(({ node }) => node !== pod.node), pod])
    },
    listAlone: pod => listAlone(rig, pod)
  }
}

const OWN = 'own'
const OWN_ROUTE = { uri: `/${OWN}/*`, upstream_id: OWN }
const ownUpstream = (pod: TestPod) => ({ type: 'roundrobin', nodes: arrayOf([pod]) })

async function listAlone(rig: Rig, pod: TestPod | undefined): Promise<void> {
  if (pod) {
    rig.put('upstreams', OWN, ownUpstream(pod))
    rig.put('routes', OWN, OWN_ROUTE)
  } else {
    rig.remove('routes', OWN)
    rig.remove('upstreams', OWN)
  }
}

function documents(rig: Rig, nodesOf: NodesOf): Owner {
  let listed: readonly TestPod[] = []
  let alone: TestPod | undefined
  const targets = new Map<string, AdcTarget>()
  const target = (url: string): AdcTarget => {
    const known = targets.get(url) ?? standaloneTarget(() => [{ url, key: rig.barrierToken }])
    targets.set(url, known)
    return known
  }
  const put = async () => {
    const pods = listed
    const objects = {
      upstreams: [
        { id: 'web', type: 'roundrobin', nodes: nodesOf(pods) },
        ...(alone ? [{ id: OWN, ...ownUpstream(alone) }] : [])
      ],
      services: [],
      routes: [{ id: 'all', uri: '/*', upstream_id: 'web' }, ...(alone ? [{ id: OWN, ...OWN_ROUTE }] : [])]
    }
    // An unreachable gateway has an old list until the next write, as with the real owner.
    await Promise.allSettled(
      rig.gateways.flatMap(({ running, urls }) =>
        running && urls.admin ? [target(urls.admin)(objects)] : []
      )
    )
  }
  // Documents are sent one after another: if a newer one arrived first, the gateway would refuse the older one for its version.
  let last = Promise.resolve()
  const write: Owner['write'] = pods => {
    if (pods.length > 0) listed = pods
    last = last.then(put)
    return last
  }
  return {
    write,
    add: pod => write([...listed, pod]),
    listAlone(pod) {
      alone = pod
      return write(listed)
    }
  }
}

function discovery(rig: Rig): Owner {
  let listed: readonly TestPod[] = []
  const write: Owner['write'] = async pods => {
    if (pods.length === 0) return
    listed = pods
    if (rig.nodes(HOLDER).length === 0) {
      rig.put('upstreams', 'web', {
        type: 'roundrobin',
        discovery_type: 'kubernetes',
        service_name: `${SERVICE}:http`
      })
      rig.put('routes', 'all', { uri: '/*', upstream_id: 'web' })
    }
    rig.discovery?.set(SERVICE, { http: pods.map(({ ip, port }) => ({ host: ip, port, weight: 50 })) })
  }
  return { write, add: pod => write([...listed, pod]), listAlone: pod => listAlone(rig, pod) }
}
