import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { EntryIn } from './barrier.ts'
import type { Node } from './gateway.ts'

let made = 0

const program = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const PROGRAM = program('./backend-process.ts')
/** The program of a pod with websockets, server-sent events and gRPC streams. At SIGTERM it ends each in its own protocol. */
export const LONG_POD = program('./long-pod-process.ts')

/** A pod: a separate process on its own loopback address, so that a test can kill it. */
export class Backend {
  readonly name: string
  readonly uid: string
  readonly node: Node
  /** The gRPC port of the same pod. */
  readonly grpc: Node
  /** The requests that reached the pod, as path and query. */
  readonly requests: string[] = []
  readonly #process: ChildProcess

  private constructor(name: string, node: Node, grpc: Node, child: ChildProcess) {
    this.name = name
    this.uid = `uid-${name}`
    this.node = node
    this.grpc = grpc
    this.#process = child
    child.on('message', (message: { request?: string }) => {
      if (message.request) this.requests.push(message.request)
    })
  }

  /** @param port default: a free one */
  static async start(port = 0, file = PROGRAM): Promise<Backend> {
    made += 1
    const name = `pod-${made}`
    const host = `127.${200 + (process.pid % 50)}.${(process.pid >> 6) % 250}.${1 + (made % 250)}`
    const child = fork(file, [host, name, String(port)], { stdio: 'inherit' })
    const [ports] = (await once(child, 'message')) as [{ port: number; grpc: number }]
    return new Backend(name, { host, port: ports.port }, { host, port: ports.grpc }, child)
  }

  /** The entry of this pod. */
  entry(differs: Partial<EntryIn> = {}): EntryIn {
    return { uid: this.uid, ip: this.node.host, port: this.node.port, ...differs }
  }

  get sealed(): EntryIn {
    return this.entry({ state: 'sealed' })
  }

  /** Lets the pod answer the calls that it holds. */
  release(): void {
    this.#process.send('release')
  }

  /** Sends SIGTERM, at which the program decides when to end. Resolves when the process is gone. */
  async terminate(): Promise<void> {
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGTERM')
    await gone
  }

  /** Sends SIGKILL, as if the pod's process crashed. Resolves when the process is gone. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}
