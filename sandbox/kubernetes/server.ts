import { randomBytes } from 'node:crypto'
import { createConnectionFaults, type ConnectionFaults } from './connection-faults.ts'
import { createFaults, type RequestFaults } from './faults.ts'
import { createHandler } from './handler.ts'
import { kubeconfigFor, writeKubeconfig } from './kubeconfig.ts'
import { listen, type Listener } from './listener.ts'
import { createStore, type Store, type StoreOptions } from './store.ts'
import { selfSigned } from './tls.ts'
import type { WatchStream } from './watch-stream.ts'

export interface KubernetesOptions {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 0: the system picks a port. */
  readonly port?: number
  /** True: TLS with a new certificate, HTTP/2 and HTTP/1.1. False: both without TLS. Default true. */
  readonly tls?: boolean
  /** Default "1.36". */
  readonly version?: string
  /** An API server without WatchList, which answers 422 to it. */
  readonly old?: boolean
  /** Default 60 000 ms. */
  readonly bookmarkEveryMs?: number
  /** How long a read waits for a resourceVersion from the future. Default 3000 ms. */
  readonly waitMs?: number
  readonly store?: StoreOptions
}

export interface Kubernetes {
  readonly url: string
  readonly port: number
  readonly kubeconfig: ReturnType<typeof kubeconfigFor>
  /** PEM of the CA to trust; undefined without TLS. */
  readonly ca: string | undefined
  /** The administrator's bearer token. */
  readonly token: string
  readonly store: Store
  readonly faults: RequestFaults &
    ConnectionFaults & {
      /** The old token gets 401 from now on; returns the new one. */
      rotateToken(): string
      /** Ends every request fault, and unmutes watches. */
      clear(): void
    }
  /** Writes the kubeconfig to a file that only its owner can read. */
  writeKubeconfig(path: string): Promise<void>
  /** How many watches are open. */
  watchCount(): number
  /** How many connections are open. */
  connectionCount(): number
  /** How many connections it has accepted since its start. */
  acceptedCount(): number
  close(): Promise<void>
}

const freshToken = () => `sandbox-${randomBytes(24).toString('base64url')}`
const NAMESPACES = ['default', 'kube-system']

/** Starts the stand-in for the Kubernetes API server. Controllers are separate: `startControllers(kubernetes.store)`. */
export async function startKubernetes(options: KubernetesOptions = {}): Promise<Kubernetes> {
  const { host = '127.0.0.1', port = 0, tls = true, version = '1.36', old = false } = options
  const store = createStore(options.store)
  for (const name of NAMESPACES) {
    store.create('namespaces', { metadata: { name } })
    store.create('serviceaccounts', { metadata: { name: 'default', namespace: name } })
  }
  const token = freshToken()
  let admitted = token
  const watches = new Set<WatchStream>()
  const { faults, state, clear } = createFaults({
    version: () => store.version(),
    muteOpenWatches: mute => {
      for (const watch of watches) watch.mute(mute)
    }
  })
  const certificate = tls ? await selfSigned([host, 'localhost', '127.0.0.1', '::1']) : undefined
  const handler = createHandler({
    store,
    token: () => admitted,
    faults: state,
    watches,
    version,
    old,
    bookmarkEveryMs: options.bookmarkEveryMs ?? 60_000,
    waitMs: options.waitMs ?? 3000,
    reset: response => listener.reset(response)
  })
  const listener: Listener = await listen(handler, { host, port, certificate })
  const url = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`
  const kubeconfig = kubeconfigFor({ url, ca: certificate?.ca, token })

  return {
    url,
    port: listener.port,
    kubeconfig,
    ca: certificate?.ca,
    token,
    store,
    faults: {
      ...faults,
      ...createConnectionFaults(listener, store, watches),
      rotateToken: () => (admitted = freshToken()),
      clear
    },
    writeKubeconfig: path => writeKubeconfig(path, kubeconfig),
    watchCount: () => watches.size,
    connectionCount: () => listener.wires.size,
    acceptedCount: () => listener.accepted(),
    async close() {
      for (const watch of watches) watch.end()
      await listener.down()
    }
  }
}
