import type { ServerResponse } from 'node:http'
import { OWNER_AGENT } from '../../sandbox/owner/put.ts'
import { nodesIn } from './held-nodes.ts'
import type { Rig } from './rig.ts'

/** Compares each write of one agent with its read right before, and with its own removals. */
export interface Listings {
  /** How many writes changed or repeated a list. */
  writes(): number
  /** Nodes that a write listed without a reason: they were not in the agent's last read, and it had not removed them. */
  unfounded(): readonly string[]
}

const OBJECT = /^\/apisix\/admin\/([a-z_]+\/[^/?]+)$/

export function watchListings(rig: Rig): Listings {
  /** The agent's last read, by path of the nodes. */
  const read = new Map<string, readonly string[]>()
  const taken = new Map<string, Set<string>>()
  const before = new Map<string, readonly string[]>()
  const unfounded: string[] = []
  let writes = 0

  rig.admin.listener.server.prependListener('request', ({ method, url = '', headers }, response) => {
    const key = OBJECT.exec(url)?.[1]
    if (method !== 'GET' || key === undefined || headers['user-agent'] === OWNER_AGENT) return
    onBody(response, body => {
      const { value } = JSON.parse(body) as { readonly value?: never }
      if (value === undefined) return
      for (const [holder, nodes] of Object.entries(nodesIn({ key: `/apisix/${key}`, value })))
        read.set(holder, nodes)
    })
  })
  rig.apisix.store.watch(event => {
    if (event.kind !== 'put') return
    for (const [holder, nodes] of Object.entries(nodesIn(event.item))) {
      const old = before.get(holder) ?? []
      before.set(holder, nodes)
      if (rig.byHand()) continue
      writes += 1
      const own = taken.get(holder) ?? new Set<string>()
      taken.set(holder, own)
      for (const node of old) if (!nodes.includes(node)) own.add(node)
      for (const node of nodes)
        if (!read.get(holder)?.includes(node) && !own.has(node)) unfounded.push(`${node} in ${holder}`)
    }
  })
  return { writes: () => writes, unfounded: () => unfounded }
}

/** Calls back with the answer when it is sent. */
function onBody(response: ServerResponse, tell: (body: string) => void): void {
  const end = response.end.bind(response) as (...all: unknown[]) => ServerResponse
  response.end = ((...all: unknown[]) => {
    if (typeof all[0] === 'string' || Buffer.isBuffer(all[0])) tell(String(all[0]))
    return end(...all)
  }) as typeof response.end
}
