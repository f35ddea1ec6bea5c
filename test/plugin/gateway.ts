import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Addresses, type GatewayOptions, nginxConf } from './nginx-conf.ts'
import { eventually } from './eventually.ts'
import { Barrier } from './barrier.ts'

const MODULES = ['ndk_http_module.so', 'ngx_http_lua_module.so'].map(name => `/usr/lib/nginx/modules/${name}`)

let made = 0

export interface Node {
  host: string
  port: number
  weight?: number
  priority?: number
  /** The DNS name from which `host` was resolved. */
  domain?: string
}

export interface Upstream {
  type?: 'roundrobin' | 'least_conn' | 'chash' | 'ewma'
  nodes?: readonly Node[]
  retries?: number
  pass_host?: 'node'
  scheme?: 'grpc'
  /** The nginx variable, header or cookie that chash hashes. */
  key?: string
  /** The kind of the key; default: a variable. */
  hash_on?: 'vars' | 'header' | 'cookie'
  /** The hosts that active health checks report as up, and with a "?" those that they do not know yet. Without this field there are no health checks. */
  up?: readonly string[]
  /** The upstream is inline in a traffic-split rule, which creates it for every request. */
  split?: boolean
  /** The upstream is inline in a service or a route. */
  home?: 'services' | 'routes'
  /** Nodes come from service discovery, under this name of `discovery`. */
  service_name?: string
  discovery_type?: 'stand_in'
}

export type Kinds = Record<string, readonly object[]>

/** Configuration as APISIX holds it, see fake/apisix/apply.lua. */
export interface Objects {
  kinds?: Kinds
  standalone?: boolean
  reload?: Record<string, boolean>
  names?: Record<string, readonly string[] | false>
  same?: boolean
  worker?: Record<string, Kinds>
}

/** Upstreams by id, which is the first part of the path; `discovery` holds nodes by service name. */
export type Config =
  Record<string, Upstream> | { discovery?: Record<string, readonly Node[]>; objects?: Objects }

export const TYPES = ['roundrobin', 'least_conn', 'chash', 'ewma'] as const

/** The way in which a request gets the nodes of an upstream. */
export const SHAPES: Record<string, (upstream: Upstream, nodes: readonly Node[]) => Config> = {
  'an upstream': (upstream, nodes) => ({ u: { ...upstream, nodes } }),
  priorities: (upstream, nodes) => ({
    u: { ...upstream, nodes: nodes.map((node, i) => ({ ...node, priority: nodes.length - i })) }
  }),
  'a traffic-split rule': (upstream, nodes) => ({ u: { ...upstream, nodes, split: true } }),
  'service discovery': (upstream, nodes) => ({
    u: { ...upstream, service_name: 's', discovery_type: 'stand_in' },
    discovery: { s: nodes }
  }),
  'domain names': (upstream, nodes) => ({
    u: { ...upstream, nodes: nodes.map((node, i) => ({ ...node, domain: `pod-${i}.test` })) }
  }),
  'active health checks': (upstream, nodes) => ({
    u: { up: nodes.map(node => node.host), ...upstream, nodes }
  })
}

/** Throws if this machine has no nginx with Lua. The error names the packages to install. */
function needNginx(): void {
  const missing = ['/usr/sbin/nginx', ...MODULES].filter(file => !existsSync(file))
  if (missing.length > 0) {
    throw new Error(
      `${missing.join(', ')} not found: apt-get install nginx-light libnginx-mod-http-lua lua-resty-core lua-cjson`
    )
  }
}

/** A real nginx with several workers that runs the plugin, in its own directory, on its own loopback addresses. */
export class Gateway {
  readonly at: Addresses
  readonly url: string
  readonly barrier: Barrier
  /** The listener for HTTP/2 without TLS, for gRPC. */
  readonly h2: string
  readonly #options: GatewayOptions
  #process: ChildProcess | undefined

  private constructor(at: Addresses, options: GatewayOptions) {
    this.at = at
    this.url = `http://${at.gateway}`
    this.h2 = `http://${at.h2}`
    this.barrier = new Barrier(`http://${at.barrier}`, at.token)
    this.#options = options
  }

  static async start(options: GatewayOptions = {}): Promise<Gateway> {
    needNginx()
    made += 1
    const host = `127.${100 + (process.pid % 100)}.${(process.pid >> 7) % 250}.${made}`
    const dir = mkdtempSync(join(tmpdir(), 'apisix-drain-'))
    const gateway = new Gateway(
      {
        dir,
        gateway: `${host}:9080`,
        h2: `${host}:9081`,
        barrier: `${host}:9281`,
        tls: `${host}:9282`,
        door: `${host}:9082`,
        token: `token-${made}`
      },
      options
    )
    writeFileSync(join(dir, 'token'), `${gateway.at.token}\n`)
    await gateway.#run()
    return gateway
  }

  async #run(): Promise<void> {
    const { dir } = this.at
    writeFileSync(join(dir, 'nginx.conf'), nginxConf(this.at, this.#options))
    const [program, ...args] = [
      ...(this.#options.under ?? []),
      '/usr/sbin/nginx',
      '-p',
      dir,
      '-c',
      join(dir, 'nginx.conf')
    ]
    const child = spawn(program, args, { stdio: 'ignore' })
    this.#process = child
    await eventually('nginx answers', async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended: ${this.errors()}`)
      const answer = await fetch(`http://${this.at.door}/`, { signal: AbortSignal.timeout(1000) })
      await answer.text()
      return answer.ok
    })
  }

  /** nginx's log. */
  errors(): string {
    const file = join(this.at.dir, 'error.log')
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  }

  /** Gives the stand-in for APISIX its upstreams. Every worker applies them a few milliseconds later. */
  async configure(upstreams: Config): Promise<number> {
    const answer = await fetch(`http://${this.at.door}/config`, {
      method: 'POST',
      body: JSON.stringify(upstreams)
    })
    return Number(await answer.text())
  }

  /** Configures, and waits until every worker has started and applied it. */
  async configured(upstreams: Config): Promise<void> {
    const revision = await this.configure(upstreams)
    await eventually('every worker applied the configuration', async () => {
      const serve = (await this.barrier.state()).workers.filter(w => !w.exiting)
      return serve.length >= (this.#options.workers ?? 3) && serve.every(w => w.revision >= revision)
    })
  }

  /** Waits for the next heartbeat of every worker. By then each worker has read the deny-list. */
  async lookedAgain(): Promise<void> {
    const { now } = await this.barrier.state()
    await eventually('every worker has looked', async () => {
      const { workers } = await this.barrier.state()
      return workers.every(w => w.exiting || w.seen > now)
    })
  }

  async untilFit(): Promise<void> {
    await eventually('it is fit', async () => (await this.barrier.state()).fit)
  }

  async door(path: string): Promise<string> {
    const answer = await fetch(`http://${this.at.door}${path}`, { headers: { connection: 'close' } })
    return await answer.text()
  }

  /** Returns how many pickers all workers together have built. */
  async pickersMade(): Promise<number> {
    const all = new Map<number, number>()
    await eventually('every worker answers', async () => {
      const { pid, made } = JSON.parse(await this.door('/')) as { pid: number; made: number }
      all.set(pid, made)
      return all.size === this.workers().length
    })
    return all.values().reduce((sum, n) => sum + n, 0)
  }

  /** Returns the pids of the workers, as the kernel lists them. */
  workers(): number[] {
    const master = this.#process?.pid
    if (!master) return []
    const children = readFileSync(`/proc/${master}/task/${master}/children`, 'utf8')
    return children.trim().split(/\s+/).filter(Boolean).map(Number)
  }

  /** Reloads nginx, with another configuration if one is given. */
  reload(options: GatewayOptions = this.#options): void {
    writeFileSync(join(this.at.dir, 'nginx.conf'), nginxConf(this.at, options))
    this.signal('SIGHUP')
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name)
  }

  /** Stops nginx at once and starts it again, so its memory is lost. */
  async restart(): Promise<void> {
    await this.#end()
    await this.#run()
  }

  async #end(): Promise<void> {
    const child = this.#process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    for (const pid of this.workers()) resume(pid)
    child.kill('SIGTERM')
    const gone = once(child, 'exit')
    const late = setTimeout(() => child.kill('SIGKILL'), 5000)
    await gone
    clearTimeout(late)
  }

  async stop(): Promise<void> {
    await this.#end()
    rmSync(this.at.dir, { recursive: true, force: true })
  }
}

function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch {
    // the process has already ended
  }
}

/** nginx's version, for reports. */
export const nginxVersion = (): string =>
  spawnSync('/usr/sbin/nginx', ['-v'], { encoding: 'utf8' }).stderr.trim()
