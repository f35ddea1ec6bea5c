import { Agent } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { send } from './client.ts'
import { eventually } from './eventually.ts'

export interface Tally {
  sent: number
  failed: string[]
}

const upTo80 = (url: string) => `${url}?ms=${Math.floor(Math.random() * 80)}`

const KINDS = {
  get: (url: string, agent: Agent) => send(url, { agent }),
  'slow get': (url: string, agent: Agent) => send(upTo80(url), { agent }),
  post: (url: string, agent: Agent) => send(upTo80(url), { method: 'POST', body: 'x'.repeat(500), agent }),
  'slow upload': (url: string, agent: Agent) =>
    send(url, { method: 'POST', body: 'x'.repeat(2000), slowly: 60, agent })
}

/** Sends requests of four kinds until it is stopped, and records the failures that a client sees. */
export class Load {
  readonly tally: Tally = { sent: 0, failed: [] }
  readonly #stop = new AbortController()
  readonly #loops: Promise<void>[] = []

  constructor(url: string, each = 3) {
    const agent = new Agent({ keepAlive: true, maxSockets: 64 })
    for (const [kind, once] of Object.entries(KINDS)) {
      for (let i = 0; i < each; i += 1) this.#loops.push(this.#run(kind, () => once(url, agent)))
    }
    void Promise.all(this.#loops).then(() => agent.destroy())
  }

  async #run(kind: string, once: () => Promise<{ status: number }>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.tally.sent += 1
      try {
        const { status } = await once()
        if (status !== 200) this.tally.failed.push(`${kind}: ${status}`)
      } catch (error) {
        this.tally.failed.push(`${kind}: ${error instanceof Error ? error.message : String(error)}`)
      }
      // the load shares the machine with the gateway, so this leaves CPU time to the gateway
      await wait(2)
    }
  }

  /** Resolves after 30 more requests. */
  async goesOn(): Promise<void> {
    const { sent } = this.tally
    await eventually('30 more requests', () => this.tally.sent >= sent + 30)
  }

  async stop(): Promise<Tally> {
    this.#stop.abort()
    await Promise.all(this.#loops)
    return this.tally
  }
}
