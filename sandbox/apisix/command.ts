import type { AccessFact } from './access-log.ts'
import type { Apisix } from './apisix.ts'
import type { FaultRule } from './faults.ts'
import type { Gateway, GatewayUrls } from './gateway.ts'
import type { Reachability } from './server.ts'
import type { StoreHealth } from './store.ts'

/** A command of the parent process. `gateway` is a name; without it, the command is for all gateways. */
export type Command =
  | { readonly do: 'inject'; readonly api: Api; readonly rule: FaultRule; readonly gateway?: string }
  | { readonly do: 'clear-faults'; readonly gateway?: string }
  | { readonly do: 'etcd'; readonly health: StoreHealth }
  | { readonly do: WorkerAct; readonly worker: number; readonly gateway?: string }
  | {
      readonly do: 'partition'
      readonly gateway?: string
      readonly control?: Reachability
      readonly admin?: Reachability
      readonly barrier?: Reachability
    }
  | { readonly do: 'unfit'; readonly worker: number; readonly why: string; readonly gateway?: string }
  | { readonly do: 'stop' | 'start' | 'restart'; readonly gateway?: string }
  | { readonly do: 'add'; readonly host: string }
  /** Answers `Summary`. */
  | { readonly do: 'counters' }
  /** Answers the `AccessFact`s since the last such command, at most the newest `MOST_FACTS`. */
  | { readonly do: 'facts' }

type Api = 'admin' | 'control' | 'barrier'

type WorkerAct = 'freeze' | 'thaw' | 'lose-watch' | 'restore-watch' | 'kill-worker'

export interface Described {
  readonly name: string
  readonly urls: GatewayUrls
}

interface Summary {
  readonly requests: number
  /** How often each status was sent, and each node connected to. */
  readonly byStatus: Readonly<Record<string, number>>
  readonly byNode: Readonly<Record<string, number>>
}

const MOST_FACTS = 10_000

export const describeGateways = ({ gateways }: Apisix): Described[] =>
  gateways.map(({ name, urls }) => ({ name, urls }))

/** Returns the function that runs a command, and that rejects with the problem of the command. */
export function createCommander(apisix: Apisix): (command: Command) => Promise<unknown> {
  const byStatus: Record<string, number> = {}
  const byNode: Record<string, number> = {}
  let requests = 0
  let facts: AccessFact[] = []
  const keep = (fact: AccessFact): void => {
    requests += 1
    byStatus[fact.status] = (byStatus[fact.status] ?? 0) + 1
    for (const node of fact.nodes) byNode[node] = (byNode[node] ?? 0) + 1
    facts.push(fact)
    if (facts.length > 2 * MOST_FACTS) facts = facts.slice(-MOST_FACTS)
  }
  for (const gateway of apisix.gateways) gateway.onAccess(keep)

  return async command => {
    if (command.do === 'counters') return { requests, byStatus, byNode } satisfies Summary
    if (command.do === 'facts') {
      const taken = facts.slice(-MOST_FACTS)
      facts = []
      return taken
    }
    if (command.do === 'add') {
      const gateway = await apisix.add(command.host)
      gateway.onAccess(keep)
      return describeGateways(apisix).at(-1)
    }
    if (command.do === 'etcd') apisix.store.health = command.health
    else for (const gateway of named(apisix, command.gateway)) await doAt(gateway, command)
    return undefined
  }
}

const named = ({ gateways }: Apisix, name: string | undefined): Gateway[] => {
  const found = gateways.filter(gateway => name === undefined || gateway.name === name)
  if (found.length === 0)
    throw new Error(`no gateway ${name}: there are ${gateways.map(g => g.name).join(', ')}`)
  return found
}

const doAt = async (gateway: Gateway, command: Extract<Command, { gateway?: string }>): Promise<void> => {
  const worker = 'worker' in command ? gateway.workers[command.worker] : undefined
  if ('worker' in command && !worker) throw new Error(`${gateway.name} has no worker ${command.worker}`)
  switch (command.do) {
    case 'inject':
      apiOf(gateway, command.api).faults.inject(command.rule)
      break
    case 'clear-faults':
      for (const api of [gateway.admin, gateway.control, gateway.barrierApi]) api?.faults.clear()
      break
    case 'partition':
      await gateway.partition(command)
      break
    case 'unfit':
      if (worker) gateway.barrier?.setUnfit(worker.pid, command.why)
      break
    case 'freeze':
      worker?.freeze()
      break
    case 'thaw':
      worker?.thaw()
      break
    case 'lose-watch':
      worker?.loseWatch()
      break
    case 'restore-watch':
      worker?.restoreWatch()
      break
    case 'kill-worker':
      gateway.killWorker(command.worker)
      break
    case 'stop':
      await gateway.stop()
      break
    case 'start':
      await gateway.start()
      break
    case 'restart':
      await gateway.restart()
      break
  }
}

const apiOf = (gateway: Gateway, api: Api) => {
  const found = { admin: gateway.admin, control: gateway.control, barrier: gateway.barrierApi }[api]
  if (!found) throw new Error(`${gateway.name} serves no ${api} API`)
  return found
}
