import type { Discovery } from '../discovery.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { bareHost, readNodes } from '../nodes.ts'
import { APPLIED } from '../resources.ts'
import type { Place } from '../router.ts'
import { idOf, type Item } from '../store.ts'
import type { Worker } from '../worker.ts'
import type { LuaValue } from './lua.ts'
import { REFS, theVm, type Names, type VmAnswer } from './vm.ts'

/** A node as the proxy connects to it. */
export interface Target {
  /** `host:port`, IPv6 in brackets: the node's name in the access log. */
  readonly name: string
  /** Without brackets. */
  readonly host: string
  readonly port: number
}

/** What the balancer phase decided. */
export type Balanced =
  | { readonly kind: 'refused'; readonly status: number }
  | {
      readonly kind: 'target'
      readonly target: Target
      /** How many more tries there may be; only at the first try. */
      readonly more: number
    }

/** The Lua of one worker. `id`: a number of the request. */
export interface LuaWorker {
  /** The access phase. Returns 0, or the status that ends the request. */
  access(id: number, place: Place, asked: Readonly<Record<'uri' | 'host' | 'client', string>>): number
  /** Before each connect. */
  balance(id: number): Balanced
  header(id: number, status: number, contentType: string): void
  log(id: number): void
  /** One request to the Barrier API. */
  ask(request: JsonObject): Promise<VmAnswer>
  freeze(frozen: boolean): void
  /** As at a reload: it only finishes its requests. */
  retire(): void
  kill(): void
}

/** One gateway's nginx in the VM: what its workers share. */
export interface LuaGateway {
  worker(worker: Worker, subsystem?: 'http' | 'stream'): LuaWorker
  /** Calls a function of lua/view.lua. */
  see(name: string, ...args: readonly Json[]): Json
  nextId(): number
  /** Calls `listener` right after the Barrier API answers (`answer`), or a request ends (`end`). */
  onAct(listener: (what: Act) => void): void
  close(): void
}

type Act = 'answer' | 'end'

interface LuaGatewayOptions {
  readonly plugin: boolean
  readonly workers: number
  readonly dictionaryBytes: number
  /** `plugin_attr.apisix-drain`, and `apisix` of its configuration. */
  readonly attr: JsonObject
  readonly apisix: JsonObject
  readonly discovery: Discovery | undefined
  readonly names: Names | undefined
  readonly log: (text: string) => void
}

const KINDS: ReadonlySet<string> = new Set(APPLIED)

export async function createLuaGateway(options: LuaGatewayOptions): Promise<LuaGateway> {
  const vm = await theVm()
  const gateway = vm.next()
  const workers = new Map<number, Worker>()
  let lastRef = gateway * REFS
  let acted: (what: Act) => void = () => {}
  vm.gateways.set(gateway, {
    ...options,
    soon: (ref, run) => workers.get(ref)?.run(run)
  })
  vm.call('gateway', gateway, {
    plugin: options.plugin,
    count: options.workers,
    dictionary: options.dictionaryBytes,
    attr: options.attr,
    apisix: options.apisix
  })

  const start = (worker: Worker, subsystem: 'http' | 'stream'): LuaWorker => {
    const ref = (lastRef += 1)
    const { config } = worker
    workers.set(ref, worker)
    const items = APPLIED.flatMap(kind =>
      config.list(kind).map(item => ({
        kind,
        id: idOf(item.key),
        revision: item.modifiedIndex,
        value: asApplied(item)
      }))
    )
    vm.call('worker', gateway, ref, worker.id, worker.pid, subsystem, items, config.revision)
    const stop = config.onChange((kind, id, item, revision) => {
      const value = item && asApplied(item)
      vm.call('config', gateway, ref, KINDS.has(kind) ? kind : '', id, value, revision)
    })
    const call = (name: string, ...args: readonly LuaValue[]) =>
      workers.has(ref) ? vm.call(name, gateway, ref, ...args) : 0
    return {
      access: (id, place, { uri, host, client }) =>
        Number(call('access', id, uri, host, client, place.kind, place.id, place.rule, place.choice)),
      balance: id => balanced(String(call('balance', id))),
      header: (id, status, contentType) => void call('header', id, status, contentType),
      log: id => {
        call('log', id)
        acted('end')
      },
      ask: request =>
        new Promise(resolve => {
          const id = vm.next()
          vm.answers.set(id, answer => {
            // Lua calls this function, so the VM cannot be entered before it has returned.
            queueMicrotask(() => acted('answer'))
            resolve(answer)
          })
          call('ask', id, request)
        }),
      freeze: frozen => void (workers.has(ref) && vm.call('freeze', gateway, ref, frozen)),
      retire: () => void call('retire'),
      kill: () => {
        stop()
        call('kill')
        workers.delete(ref)
      }
    }
  }
  return {
    worker: (worker, subsystem = 'http') => start(worker, subsystem),
    see: (name, ...args) => JSON.parse(String(vm.call('see', gateway, name, args))) as Json,
    nextId: () => vm.next(),
    onAct: listener => void (acted = listener),
    close: () => {
      vm.call('gone', gateway)
      vm.gateways.delete(gateway)
    }
  }
}

function balanced(said: string): Balanced {
  const [status, host = '', port = '', more = ''] = said.split(' ')
  if (status !== '0' || host === '' || host === '-') return { kind: 'refused', status: Number(status) || 502 }
  const bare = bareHost(host)
  return {
    kind: 'target',
    target: { name: `${bare.includes(':') ? `[${bare}]` : bare}:${port}`, host: bare, port: Number(port) },
    more: Number(more) || 0
  }
}

/** An object as APISIX's filters leave it: the nodes of an upstream are a list. */
function asApplied({ key, value }: Item): JsonObject {
  const { upstream } = value
  if (key.startsWith('/apisix/upstreams/')) return withList(value)
  return isObject(upstream) ? { ...value, upstream: withList(upstream) } : value
}

const withList = (upstream: JsonObject): JsonObject => {
  const { nodes } = upstream
  if (!isObject(nodes)) return upstream
  const list = readNodes(nodes).map(({ host, port, weight }) => ({
    host,
    weight,
    ...(port !== undefined && { port })
  }))
  return { ...upstream, nodes: list }
}
