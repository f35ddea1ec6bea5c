import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { freePorts } from '../../build/free-ports.ts'
import { Barrier } from '../barrier.ts'
import { eventually } from '../eventually.ts'

interface Options {
  readonly apisix: string
  readonly bin: string
  readonly plugin: string
  readonly workers: number
  /** The nodes of the only upstream, as `address:port`. */
  readonly nodes: readonly string[]
}

const TOKEN = 'by-hand'

const barrierServer = (port: number): string => `server {
  listen 127.0.0.1:${port};
  access_log off;
  location / {
    content_by_lua_block { require("apisix.drain.api").serve() }
  }
}
`

/** A real APISIX with a stream route. It runs from files in its own folder. */
export class RealApisix {
  readonly tcpPort: number
  readonly barrier: Barrier
  readonly versions: string
  readonly #process: ChildProcess
  readonly #folder: string

  private constructor(
    ports: { tcp: number; barrier: number },
    versions: string,
    child: ChildProcess,
    folder: string
  ) {
    this.tcpPort = ports.tcp
    this.barrier = new Barrier(`http://127.0.0.1:${ports.barrier}`, TOKEN)
    this.versions = versions
    this.#process = child
    this.#folder = folder
  }

  static async start({ apisix, bin, plugin, workers, nodes }: Options): Promise<RealApisix> {
    const folder = await mkdtemp(join(tmpdir(), 'apisix-l4-'))
    const ports = await freePorts('tcp', 'http', 'control', 'barrier')
    // APISIX's workers may run as another user, which must read the folder
    await chmod(folder, 0o755)
    for (const part of ['apisix', 'deps']) await symlink(resolve(apisix, part), join(folder, part))
    await mkdir(join(folder, 'logs'))
    await cp(resolve(apisix, 'conf'), join(folder, 'conf'), { recursive: true })
    const config = {
      apisix: {
        node_listen: [{ ip: '127.0.0.1', port: ports.http }],
        control: { ip: '127.0.0.1', port: ports.control },
        enable_ipv6: false,
        enable_admin: false,
        ssl: { enable: false },
        proxy_mode: 'http&stream',
        stream_proxy: { tcp: [{ addr: `127.0.0.1:${ports.tcp}` }] },
        extra_lua_path: `${resolve(plugin)}/?.lua`,
        lua_module_hook: 'apisix.drain.hook'
      },
      deployment: { role: 'data_plane', role_data_plane: { config_provider: 'yaml' } },
      plugins: ['proxy-rewrite'],
      stream_plugins: ['ip-restriction'],
      nginx_config: {
        worker_processes: workers,
        meta: {
          lua_shared_dict: {
            'upstream-healthcheck':
              '10m; lua_shared_dict apisix-drain 10m; lua_shared_dict apisix-drain-counts 10m'
          }
        },
        http_end_configuration_snippet: barrierServer(ports.barrier)
      },
      plugin_attr: { 'apisix-drain': { token: TOKEN } }
    }
    const routes = {
      upstreams: [{ id: 'tcp', type: 'roundrobin', nodes: Object.fromEntries(nodes.map(node => [node, 1])) }],
      stream_routes: [{ id: 'tcp', server_port: ports.tcp, upstream_id: 'tcp' }]
    }
    await writeFile(join(folder, 'conf/config.yaml'), stringify(config))
    await writeFile(join(folder, 'conf/apisix.yaml'), `${stringify(routes)}#END\n`)

    const env = { ...process.env, PATH: `${resolve(bin)}:${process.env.PATH}` }
    execFileSync('luajit', ['./apisix/cli/apisix.lua', 'init'], { cwd: folder, env, stdio: 'inherit' })
    const versions = execFileSync('sh', ['-c', 'openresty -v 2>&1; luajit -v'], { env, encoding: 'utf8' })
    const args = ['-p', folder, '-c', join(folder, 'conf/nginx.conf'), '-g', 'daemon off;']
    const child = spawn('openresty', args, { env, stdio: 'inherit' })
    const gateway = new RealApisix(ports, versions.trim().replace('\n', ', '), child, folder)
    try {
      await eventually('every worker covers L4', async () => {
        const { fit, workers: serving } = await gateway.barrier.state()
        return fit && serving.length === workers && serving.every(({ l4 }) => l4 === 'covered')
      })
    } catch (error) {
      await gateway.stop()
      throw error
    }
    return gateway
  }

  async stop(): Promise<void> {
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGTERM')
    await gone
    await rm(this.#folder, { recursive: true })
  }
}
