import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { EntryIn } from './barrier.ts'
import type { Node } from './gateway.ts'

let made = 0

const PROGRAM = fileURLToPath(new URL('./backend-process.ts', import.meta.url))

/** A pod: a process of its own on a loopback address of its own, so that it can be killed like one. */
export class Backend {
  readonly name: string
  readonly uid: string
  readonly node: Node
  /** The same pod, where it speaks gRPC. */
  readonly grpc: Node
  /** Requests that reached it: path and query. */
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

  static async start(): Promise<Backend> {
    made += 1
    const name = `pod-${made}`
    const host = `127.${200 + (process.pid % 50)}.${(process.pid >> 6) % 250}.${1 + (made % 250)}`
    const child = fork(PROGRAM, [host, name], { stdio: 'inherit' })
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

  /** SIGKILL: what a pod looks like whose process is gone. Resolves when it is. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}
