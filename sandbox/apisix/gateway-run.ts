import type { Agent } from 'node:http'
import type { Socket } from 'node:net'
import type { AccessHook } from './access-log.ts'
import { serveAdminApi } from './admin-api.ts'
import type { Api } from './api-server.ts'
import { serveBarrierApi, type Readiness } from './barrier-api.ts'
import { createBarrier, type Barrier } from './barrier.ts'
import { serveControlApi } from './control-api.ts'
import { proxyRequest, type ProxyWorker } from './exchange.ts'
import { fetchEntries } from './fetch-entries.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { createRouter } from './router.ts'
import { listen, type Listener } from './server.ts'
import { proxyUpgrade } from './upgrade.ts'
import { serveStandaloneApi } from './standalone-api.ts'
import { createUpstreamAgent } from './upstream-agent.ts'
import { createWords } from './words.ts'
import { createWorker, measuredDelay, polledDelay, type Worker } from './worker.ts'

/** A gateway from one start to the next stop. A stop loses everything in it, as a full restart does. */
export interface GatewayRun {
  readonly workers: readonly Worker[]
  readonly barrier: Barrier | undefined
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

/** Unique among the workers of this process. */
let lastPid = 1000

export async function runGateway(options: GatewayOptions, onAccess: AccessHook): Promise<GatewayRun> {
  const { store, host } = options
  const barrier =
    options.barrierPort === undefined
      ? undefined
      : createBarrier(options.dictionaryBytes === undefined ? {} : { capacity: options.dictionaryBytes })
  const spawn = (id: number): Slot => {
    lastPid += 1
    const worker = createWorker({
      id,
      pid: lastPid,
      store,
      applyDelay: options.applyDelay ?? (options.standalone ? polledDelay : measuredDelay)
    })
    return {
      worker,
      router: createRouter(worker.config, options.discovery, options.names),
      agent: createUpstreamAgent(),
      clients: new Set(),
      asking: new Set(),
      busy: new Set(),
      gateway: options.name,
      barrier,
      onAccess
    }
  }
  const slots = Array.from({ length: options.workers }, (_, id) => spawn(id))
  const retiring = new Set<Slot>()
  const words =
    barrier &&
    createWords({
      workers: () => slots.map(({ worker }) => worker),
      barrier,
      discovery: options.discovery,
      names: options.names
    })
  if (barrier) barrier.words = words
  const end = (slot: Slot): void => {
    slot.worker.kill()
    slot.agent.destroy()
    barrier?.drop(slot.worker.pid)
    for (const socket of [...slot.clients, ...slot.asking]) socket.destroy()
    retiring.delete(slot)
  }
  const endIfDone = (slot: Slot): void => {
    if (retiring.has(slot) && slot.busy.size === 0) end(slot)
  }

  // The proxy's port is opened with reuseport: the kernel gives a frozen worker its share of new connections. The workers
  // share the other listeners, and only a worker that runs takes a connection from them (measured on APISIX 3.18).
  const owners = new WeakMap<Socket, Slot>()
  const accept = (socket: Socket): Worker => {
    const running = slots.filter(({ worker }) => !worker.frozen)
    const slot = oneOf(running.length > 0 ? running : slots)
    slot.asking.add(socket)
    socket.once('close', () => slot.asking.delete(socket))
    return slot.worker
  }
  const proxy = await listen({
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
  proxy.server.on('upgrade', (request, socket, head) => {
    const slot = owners.get(request.socket)
    slot?.worker.run(() => proxyUpgrade(slot, request, socket, head))
  })

  const stopped = new AbortController()
  const opened: { close(): Promise<void> }[] = [proxy]
  const close = async (): Promise<void> => {
    stopped.abort()
    words?.close()
    for (const slot of [...slots, ...retiring]) end(slot)
    await Promise.all(opened.map(one => one.close()))
  }
  try {
    const control = await serveControlApi({
      host,
      port: options.controlPort,
      accept,
      standalone: options.standalone ?? false,
      discovery: options.discovery
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
    const readiness = startFetch(options, barrier, stopped.signal)
    const barrierApi =
      barrier &&
      (await serveBarrierApi({
        host,
        port: options.barrierPort ?? 0,
        token: options.barrierToken ?? '',
        barrier,
        workers: () => [...slots, ...retiring].map(({ worker }) => worker),
        exiting: pid => [...retiring].some(({ worker }) => worker.pid === pid),
        accept,
        readiness
      }))
    if (barrierApi) opened.push(barrierApi)
    return {
      get workers() {
        return slots.map(({ worker }) => worker)
      },
      barrier,
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

const startFetch = (
  { fetchEntries: wanted, barrierToken = '' }: GatewayOptions,
  barrier: Barrier | undefined,
  stopped: AbortSignal
): (() => Readiness) => {
  if (!wanted || !barrier) return () => ({ ready: true, why: '' })
  let readiness: Readiness = { ready: false, why: `fetching the entries that hold from ${wanted.url}` }
  const settle = (why: string): void => {
    readiness = { ready: true, why }
  }
  fetchEntries(barrier, { ...wanted, token: barrierToken }, stopped).then(settle, (err: unknown) =>
    settle(String(err))
  )
  return () => readiness
}

const oneOf = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T
