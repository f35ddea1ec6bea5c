import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

const SHORT = 12
const LONG = 12
/** The shortest and the longest life of a long connection, in ms. `PAUSE` is the time between its messages. */
const LIFE = { least: 200, most: 3000 }
const PAUSE = 25
const PATIENCE = 5000

interface Totals {
  readonly short: number
  readonly long: number
  /** For each lost connection, the reason. */
  readonly lost: readonly string[]
  readonly lostAfterAck: number
}

/** Clients of an echo server behind the gateway. Some send one message on a connection, others send messages for seconds. */
export class TcpLoad {
  readonly #port: number
  readonly #loops: readonly Promise<void>[]
  readonly #lost: { readonly why: string; readonly at: number }[] = []
  readonly #acks: number[] = []
  #done = { short: 0, long: 0 }
  #stopping = false

  constructor(port: number) {
    this.#port = port
    this.#loops = [
      ...Array.from({ length: SHORT }, () => this.#loop('short', () => 0)),
      ...Array.from({ length: LONG }, () =>
        this.#loop('long', () => LIFE.least + Math.random() * (LIFE.most - LIFE.least))
      )
    ]
  }

  /** Records that a backend was killed just now, after its ack. */
  ack(): void {
    this.#acks.push(performance.now())
  }

  async stop(): Promise<Totals> {
    this.#stopping = true
    await Promise.all(this.#loops)
    const lostAfterAck = this.#lost.filter(({ at }) =>
      this.#acks.some(ack => at >= ack - 50 && at < ack + 1000)
    )
    return { ...this.#done, lost: this.#lost.map(({ why }) => why), lostAfterAck: lostAfterAck.length }
  }

  async #loop(kind: 'short' | 'long', life: () => number): Promise<void> {
    while (!this.#stopping) {
      const why = await talk(this.#port, life())
      this.#done[kind] += 1
      if (why !== undefined) this.#lost.push({ why: `${kind}: ${why}`, at: performance.now() })
      if (kind === 'short') await wait(5)
    }
  }
}

/** Opens one connection and repeats: a message, its echo, a pause. Resolves with the reason if the connection is lost. */
async function talk(port: number, lifeMs: number): Promise<string | undefined> {
  const socket = connect(port, '127.0.0.1')
  const till = performance.now() + lifeMs
  return await new Promise(resolve => {
    let sent = 0
    let echoed = 0
    const over = (why: string | undefined) => {
      socket.destroy()
      resolve(why)
    }
    const say = () => {
      sent += 1
      socket.write('x')
    }
    socket.setTimeout(PATIENCE, () => over('no echo'))
    socket.on('connect', say)
    socket.on('error', error => over(error.message))
    socket.on('close', () => resolve(`closed with ${sent - echoed} of ${sent} messages not echoed`))
    socket.on('data', part => {
      echoed += part.length
      if (echoed < sent) return
      if (performance.now() >= till) over(undefined)
      else setTimeout(say, PAUSE)
    })
  })
}
