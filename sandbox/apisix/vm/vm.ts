import { createHash, createHmac, randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { connect, type Socket, isIP } from 'node:net'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import type { Discovery } from '../discovery.ts'
import { startLua, type LuaValue } from './lua.ts'

/** The addresses of each node name. */
export type Names = ReadonlyMap<string, readonly string[]>

/** What a gateway in the VM asks of Node. */
export interface VmGateway {
  readonly discovery: Discovery | undefined
  readonly names: Names | undefined
  /** Calls `run` once this worker runs; never if it is gone. */
  soon(worker: number, run: () => void): void
  log(text: string): void
}

/** The answer of the Barrier API to one request. */
export interface VmAnswer {
  readonly status: number
  readonly allow: string
  readonly authenticate: string
  readonly body: string
}

/** A Lua 5.1 with the plugin (sandbox/apisix/lua/vm.lua). All gateways of the process share it: one has its tables in it. */
export interface Vm {
  /** Calls a function of `ops`. */
  call(name: string, ...args: readonly LuaValue[]): string | number
  readonly gateways: Map<number, VmGateway>
  readonly answers: Map<number, (answer: VmAnswer) => void>
  /** A number that nothing else in the VM has. */
  next(): number
}

/** `SANDBOX_LUA` names a folder whose files come first: mutants are in it (test/faults/mutate.ts). */
const FOLDERS = [
  ...(process.env['SANDBOX_LUA'] ? [`${process.env['SANDBOX_LUA']}/`] : []),
  fileURLToPath(new URL('../lua/', import.meta.url)),
  fileURLToPath(new URL('../../../plugin-config/', import.meta.url))
]

const sourceOf = (name: string): string | undefined => {
  const file = FOLDERS.map(folder => `${folder}${name.replaceAll('.', '/')}.lua`).find(existsSync)
  return file === undefined ? undefined : readFileSync(file, 'utf8')
}

/** The digest of a string in which every character is a byte would need bytes: no caller looks into it, so it is base64. */
const hmac = (key: string, text: string): string => createHmac('sha1', key).update(text).digest('base64')

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

let running: Promise<Vm> | undefined

export const theVm = (): Promise<Vm> => (running ??= start())

async function start(): Promise<Vm> {
  const gateways: Vm['gateways'] = new Map()
  const answers: Vm['answers'] = new Map()
  const sockets = new Map<number, { socket: Socket; text: string; failure: string | undefined }>()
  const versions = new WeakMap<object, number>()
  let timer: NodeJS.Timeout | undefined
  let last = 0
  const next = () => (last += 1)

  const enter = (name: string, args: readonly LuaValue[]): string | number =>
    lua.call(name, performance.now() / 1000 + BASE, ...args)
  const workerOf = (ref: number): VmGateway | undefined => gateways.get(Math.floor(ref / REFS))
  const back = (ref: number, callback: number, ...args: readonly LuaValue[]): void =>
    workerOf(ref)?.soon(ref, () => enter('call_back', [callback, ...args]))

  const functions = {
    source: sourceOf,
    parse,
    hmac,
    md5: (text: string) => createHash('md5').update(text).digest('hex'),
    crc32: (text: string) => crc32(text),
    random: (n: number) => [...randomBytes(n)].map(byte => String.fromCharCode(33 + (byte % 90))).join(''),
    canonical: (ip: string) => canonicalIp(ip),
    log: (gateway: number, text: string) => gateways.get(gateway)?.log(text),
    arm: (ms: number) => {
      clearTimeout(timer)
      timer = setTimeout(() => enter('tick', []), Math.max(0, Math.ceil(ms)))
      timer.unref()
    },
    answer: (id: number, status: number, allow: string, authenticate: string, body: string) => {
      answers.get(id)?.({ status, allow, authenticate, body })
      answers.delete(id)
    },
    resolve: (gateway: number, name: string) => {
      const records = gateways.get(gateway)?.names?.get(name)
      return records?.length ? records : undefined
    },
    has_discovery: (gateway: number, type: string) => gateways.get(gateway)?.discovery?.has(type) ?? false,
    discovered: (gateway: number, type: string, service: string) => {
      const nodes = gateways.get(gateway)?.discovery?.nodes(type, service) ?? NONE
      const version = versions.get(nodes) ?? next()
      versions.set(nodes, version)
      return version
    },
    discovered_nodes: (gateway: number, type: string, service: string) =>
      gateways.get(gateway)?.discovery?.nodes(type, service) ?? NONE,
    connect: (ref: number, callback: number, host: string, port: number, timeoutMs: number) => {
      const id = next()
      const socket = connect({ host, port, timeout: timeoutMs })
      const one = { socket, text: '', failure: undefined as string | undefined }
      const fail = (why: string) => {
        one.failure ??= why
        socket.destroy()
      }
      sockets.set(id, one)
      socket.setEncoding('utf8')
      socket.unref()
      socket.on('data', (text: string) => (one.text += text))
      socket.on('timeout', () => fail('timeout'))
      socket.on('error', error => fail('code' in error ? String(error.code) : 'failed'))
      const refused = () => back(ref, callback, undefined, one.failure ?? 'closed')
      socket.once('close', refused)
      socket.once('connect', () => {
        socket.off('close', refused)
        back(ref, callback, id)
      })
    },
    send: (id: number, text: string) => sockets.get(id)?.socket.write(text),
    read: (ref: number, callback: number, id: number) => {
      const one = sockets.get(id)
      const done = () => back(ref, callback, one?.text ?? '', one?.failure ?? 'closed')
      if (!one || one.socket.closed) setImmediate(done)
      else one.socket.once('close', done)
    },
    close: (id: number) => {
      sockets.get(id)?.socket.destroy()
      sockets.delete(id)
    }
  }
  const lua = await startLua(functions, sourceOf('vm') ?? '')
  return { call: (name, ...args) => enter(name, args), gateways, answers, next }
}

const NONE: readonly never[] = []

/** A worker's number is that of its gateway times this, plus its own. */
export const REFS = 1_000_000

/** The VM's clock shows seconds since the epoch as of the start of this process, and never steps. */
const BASE = performance.timeOrigin / 1000

/** The canonical form of an address: lower case, IPv6 compressed and without brackets. `undefined` if `text` is not an address. */
function canonicalIp(text: string): string | undefined {
  const family = isIP(text)
  if (family === 4) return text
  return family === 6 && !text.includes('%') ? new URL(`http://[${text}]`).hostname.slice(1, -1) : undefined
}
