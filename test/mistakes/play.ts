import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import type { AddressInfo, Server as NetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { endAll, type Ends } from '../../sandbox/ends.ts'
import { selfSigned } from '../../sandbox/kubernetes/tls.ts'
import { GATEWAY_NAMESPACE } from '../../sandbox/manifests.ts'
import { configFile } from '../build/config.ts'
import { startRig, type Rig } from '../build/rig.ts'
import { rowsOf } from '../build/rows.ts'

/** One mistake of an operator, and the output that must explain it, as list.yaml has it. */
export interface Mistake {
  readonly title: string
  readonly args?: readonly string[]
  /** Settings that differ from a valid configuration; `null` removes one. */
  readonly settings?: Readonly<Record<string, string | null>>
  /** The preStop of a pod, as a line for `sh -c`. */
  readonly hook?: string
  /** APISIX lists a pod without a hook. */
  readonly listed?: boolean
  /** The whole file of configuration. */
  readonly file?: string
  readonly exit: number
  /** The output of the command must match each of these patterns: the setting, and the change. */
  readonly says: readonly string[]
  /** The output must match this exactly once. */
  readonly once?: string
}

export const MISTAKES = rowsOf('list.yaml', import.meta.url) as readonly Mistake[]

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))
/** The time limit of a command, in ms. */
const LONGEST_MS = 120_000

export interface Printed {
  readonly code: number | null
  /** Standard output, then standard error. */
  readonly text: string
}

/** Runs the real program against stand-ins, in a separate process, and returns its output. */
export async function play(mistake: Mistake): Promise<Printed> {
  const { args = [] } = mistake
  const ends: Ends = []
  try {
    const rig = await startRig({ gateways: 2, barrier: true, agent: false })
    ends.push(() => rig.close())
    const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-mistake-'))
    ends.push(() => rm(directory, { recursive: true }))
    const certificate = await selfSigned(['127.0.0.1'])
    const page = createServer((_request, response) => response.end('<html>Log in</html>'))
    const tls = createSecureServer(
      { ...certificate, allowHTTP1: true },
      (_request, response) => void response.end('{}')
    )
    const gone = createServer()
    const [pagePort, tlsPort, closed] = await Promise.all([listen(page), listen(tls), listen(gone)])
    gone.close()
    ends.push(
      () => page.closeAllConnections(),
      () => page.close(),
      () => tls.close()
    )

    const kubeconfig = join(directory, 'kubeconfig')
    await rig.kubernetes.writeKubeconfig(kubeconfig)
    const changed = async (name: string, cluster: Readonly<Record<string, string>>) => {
      const config = parse(readFileSync(kubeconfig, 'utf8'))
      Object.assign(config.clusters[0].cluster, cluster)
      const path = join(directory, name)
      await writeFile(path, stringify(config))
      return path
    }
    const places: Readonly<Record<string, string>> = {
      admin: rig.admin.url,
      closed: `${closed}`,
      page: `${pagePort}`,
      tls: `${tlsPort}`,
      http1: await changed('http1', { server: `http://127.0.0.1:${pagePort}` }),
      'closed-cluster': await changed('closed', { server: `https://127.0.0.1:${closed}` }),
      'other-ca': await changed('other-ca', {
        server: `https://127.0.0.1:${tlsPort}`,
        'certificate-authority-data': Buffer.from((await selfSigned(['x'])).ca).toString('base64')
      })
    }
    const placed = (value: string | null) =>
      value?.replace(/<(.*?)>/, (_, name: string) => places[name] ?? '')
    const own = Object.entries(mistake.settings ?? {}).map(([name, value]) => [name, placed(value)])
    await rig.applied()
    if (mistake.hook !== undefined) hooked(rig, mistake.hook)
    if (mistake.listed)
      rig.upstream('web', [rig.pod('web-7', { owner: { kind: 'ReplicaSet', name: 'web' } })])
    const settings = {
      KUBERNETES_KUBECONFIG: kubeconfig,
      APISIX_ADMIN_URL: rig.admin.url,
      APISIX_ADMIN_KEY: rig.barrierToken,
      APISIX_CONTROL_PORT: new URL(rig.gateways[0]?.urls.control ?? '').port,
      APISIX_BARRIER_PORT: new URL(rig.gateways[0]?.urls.barrier ?? '').port,
      APISIX_BARRIER_SCHEME: 'http',
      APISIX_BARRIER_TOKEN: rig.barrierToken,
      APISIX_GATEWAYS_NAMESPACE: GATEWAY_NAMESPACE,
      SERVE_PORT: '0',
      SERVE_DASHBOARD_ENABLED: 'true',
      SERVE_DASHBOARD_AUTH: 'none',
      ...Object.fromEntries(own)
    }
    const file = join(directory, 'config.yaml')
    await writeFile(file, mistake.file ?? readFileSync(configFile(settings)))
    return await run(args.includes('--config') ? args : [...args, '--config', file])
  } finally {
    await endAll(ends)
  }
}

/** Creates a pod with this hook, and the Service of the agents. */
function hooked({ kubernetes: { store } }: Rig, line: string): void {
  const preStop = { exec: { command: ['sh', '-c', line] } }
  store.create('namespaces', { metadata: { name: 'drain' } })
  store.create('services', {
    metadata: { namespace: 'apisix', name: 'apisix-drain' },
    spec: { ports: [{ port: 8080 }] }
  })
  store.create('pods', {
    metadata: { namespace: 'shop', name: 'web-1' },
    spec: { containers: [{ name: 'app', image: 'web', lifecycle: { preStop } }] }
  })
}

async function listen(server: NetServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function run(args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LONGEST_MS,
    killSignal: 'SIGKILL'
  })
  const said = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text: `${said.out}${said.err}` }
}

/** Returns the faults of the output, or an empty list if the output names the setting and the change. */
export function faultsOf({ exit, says, once: single }: Mistake, { code, text }: Printed): readonly string[] {
  const times = single === undefined ? 1 : [...text.matchAll(new RegExp(single, 'g'))].length
  return [
    ...(code === exit ? [] : [`exit code ${code} instead of ${exit}`]),
    ...says.filter(words => !new RegExp(words).test(text)).map(words => `does not say ${words}`),
    ...(times === 1 ? [] : [`says ${single} ${times} times`])
  ]
}
