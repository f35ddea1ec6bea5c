import type { Agent } from 'node:http'
import type { Socket } from 'node:net'
import type { AccessHook } from './access-log.ts'
import { serveAdminApi } from './admin-api.ts'
import { byWorker, serveApi, type Api, type Ask } from './api-server.ts'
import { createBarrier, type Barrier } from './barrier.ts'
import { serveControlApi } from './control-api.ts'
import { proxyRequest, type ProxyWorker } from './exchange.ts'
import type { GatewayOptions } from './gateway-options.ts'
import type { JsonObject } from './json.ts'
import { createRouter } from './router.ts'
import { listen, type Listener } from './server.ts'
import { proxyUpgrade } from './upgrade.ts'
import { serveStandaloneApi } from './standalone-api.ts'
import { createUpstreamAgent } from './upstream-agent.ts'
import { createLuaGateway, type LuaWorker } from './vm/gateway.ts'
import { createWorker, measuredDelay, polledDelay, type Worker } from './worker.ts'

/** A gateway from one start to the next stop. A stop loses everything in it, as a full restart does. */
export interface GatewayRun {
  readonly workers: readonly Worker[]
  readonly barrier: Barrier | undefined
  /** The errors that its Lua logged. */
  readonly log: readonly string[]
  readonly proxy: Listener
  readonly control: Api
  readonly admin: Api | undefined
  readonly barrierApi: Api | undefined
  /** As SIGKILL: the worker's connections break, its counts are dropped, and the master starts another worker. */
  killWorker(id: number): void
  /** As SIGHUP: new workers take new requests; the old ones finish theirs and are counted until then. */
  reload(): void
  close(): Promise<void>
}

interface Slot extends ProxyWorker {
  readonly agent: Agent
  readonly clients: Set<Socket>
  /** Connections to the gateway's APIs: they break when the gateway stops, but survive a reload. */
  readonly asking: Set<Socket>
  /** Connections with a request that is not answered yet. */
  readonly busy: Set<Socket>
}

/** The size that APISIX gives the plugin's dictionary: 10 MiB. */
const DICTIONARY_BYTES = 10 * 1024 * 1024

/** The most lines that a gateway's error log keeps. */
const MOST_LOGGED = 1000

/** Unique among the workers of this process. */
let lastPid = 1000

export async function runGateway(options: GatewayOptions, onAccess: AccessHook): Promise<GatewayRun> {
  const { store, host } = options
  const { barrierPort, fetchEntries } = options
  const log: string[] = []
  const gateway = await createLuaGateway({
    plugin: barrierPort !== undefined,
    workers: options.workers,
    dictionaryBytes: options.dictionaryBytes ?? DICTIONARY_BYTES,
    attr: {
      ...(options.barrierToken && { token: options.barrierToken }),
      ...(fetchEntries && { agent: fetchEntries.url, fetch_give_up: fetchEntries.timeoutMs / 1000 })
    },
    apisix: { proxy_mode: options.stream ? 'http&stream' : 'http' },
    discovery: options.discovery,
    names: options.names,
    log: text => void (log.length < MOST_LOGGED && log.push(text))
  })
  const streams = new Map<Worker, LuaWorker>()
  const setStreams = (on: boolean): void => {
    for (const { worker } of slots) if (on) streams.set(worker, gateway.worker(worker, 'stream'))
    if (on) return
    for (const stream of streams.values()) stream.kill()
    streams.clear()
  }
  const barrier = barrierPort === undefined ? undefined : createBarrier(gateway, setStreams)
  const spawn = (id: number): Slot => {
    lastPid += 1
    const worker = createWorker({
      id,
      pid: lastPid,
      store,
      applyDelay: options.applyDelay ?? (options.standalone ? polledDelay : measuredDelay),
      onFreeze: frozen => lua.freeze(frozen)
    })
    const lua = gateway.worker(worker)
    return {
      worker,
      lua,
      nextId: () => gateway.nextId(),
      router: createRouter(worker.config),
      agent: createUpstreamAgent(),
      clients: new Set(),
      asking: new Set(),
      busy: new Set(),
      gateway: options.name,
      onAccess
    }
  }
  const slots = Array.from({ length: options.workers }, (_, id) => spawn(id))
  const retiring = new Set<Slot>()
  const end = (slot: Slot): void => {
    slot.worker.kill()
    slot.lua.kill()
    streams.get(slot.worker)?.kill()
    slot.agent.destroy()
    for (const socket of [...slot.clients, ...slot.asking]) socket.destroy()
    retiring.delete(slot)
  }
  const endIfDone = (slot: Slot): void => {
    if (retiring.has(slot) && slot.busy.size === 0) end(slot)
  }

  // The proxy's port is opened with reuseport: the kernel gives a frozen worker its share of new connections. The workers
  // share the other listeners, and only a worker that runs takes a connection from them (measured on APISIX 3.18).
  const owners = new WeakMap<Socket, Slot>()
  const acceptSlot = (socket: Socket): Slot => {
    const running = slots.filter(({ worker }) => !worker.frozen)
    const slot = slots[options.nextWorker?.() ?? -1] ?? oneOf(running.length > 0 ? running : slots)
    slot.asking.add(socket)
    socket.once('close', () => slot.asking.delete(socket))
    return slot
  }
  const accept = (socket: Socket): Worker => acceptSlot(socket).worker
  const opened: { close(): Promise<void> }[] = []
  const close = async (): Promise<void> => {
    barrier?.close()
    for (const slot of [...slots, ...retiring]) end(slot)
    gateway.close()
    await Promise.all(opened.map(one => one.close()))
  }
  const serveProxy = () =>
    listen({
      host,
      port: options.proxyPort,
      onConnection: socket => {
        const slot = oneOf(slots)
        owners.set(socket, slot)
        slot.clients.add(socket)
        socket.once('close', () => slot.clients.delete(socket))
      },
      onRequest: (request, response) => {
        const { socket } = request
        const slot = owners.get(socket)
        if (!slot) return
        slot.busy.add(socket)
        response.once('close', () => {
          slot.busy.delete(socket)
          if (retiring.has(slot)) socket.end()
          endIfDone(slot)
        })
        slot.worker.run(() => proxyRequest(slot, request, response))
      }
    })
  try {
    const proxy = await serveProxy()
    opened.push(proxy)
    proxy.server.on('upgrade', (request, socket, head) => {
      const slot = owners.get(request.socket)
      slot?.worker.run(() => proxyUpgrade(slot, request, socket, head))
    })

    const control = await serveControlApi({
      host,
      port: options.controlPort,
      accept,
      standalone: options.standalone ?? false
    })
    opened.push(control)
    const admin =
      options.adminPort === undefined
        ? undefined
        : await (options.standalone ? serveStandaloneApi : serveAdminApi)({
            ...options,
            port: options.adminPort
          })
    if (admin) opened.push(admin)
    const barrierApi =
      barrier &&
      (await serveApi({
        host,
        port: barrierPort ?? 0,
        ...byWorker(
          socket => withTurn(acceptSlot(socket)),
          async ({ lua, turn }, ask) => {
            const { status, allow, authenticate, body } = await lua.ask(asVar(ask))
            await turn()
            return {
              status,
              headers: {
                'content-type': 'application/json',
                ...(allow && { allow }),
                ...(authenticate && { 'www-authenticate': authenticate })
              },
              body
            }
          }
        )
      }))
    if (barrierApi) opened.push(barrierApi)
    return {
      get workers() {
        return slots.map(({ worker }) => worker)
      },
      barrier,
      log,
      proxy,
      control,
      admin,
      barrierApi,
      killWorker: id => {
        const slot = slots[id]
        if (!slot) return
        slots[id] = spawn(id)
        end(slot)
      },
      reload: () => {
        for (const [id, slot] of slots.entries()) {
          retiring.add(slot)
          slot.lua.retire()
          slots[id] = spawn(id)
          for (const client of slot.clients) if (!slot.busy.has(client)) client.destroy()
          endIfDone(slot)
        }
      },
      close
    }
  } catch (err) {
    await close()
    throw err
  }
}

const withTurn = ({
  worker,
  lua
}: Slot): { readonly lua: LuaWorker; readonly turn: () => Promise<void> } => ({
  lua,
  turn: () => worker.turn()
})

/** A request as nginx shows it to Lua. */
const asVar = ({ method, path, query, headers, body }: Ask): JsonObject => ({
  method,
  body,
  var: {
    uri: path,
    http_content_length: String(Buffer.byteLength(body)),
    ...(headers.authorization !== undefined && { http_authorization: headers.authorization }),
    ...Object.fromEntries([...query].map(([name, value]) => [`arg_${name}`, value]))
  }
})

const oneOf = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T
