import type { Agent } from 'node:http'
import { Backend } from './backend.ts'
import { send } from './client.ts'

const SESSIONS = 1000
const AT_ONCE = 20

export async function startAll(n: number): Promise<Backend[]> {
  const pods: Backend[] = []
  while (pods.length < n) pods.push(await Backend.start())
  return pods
}

/** New sessions: the pods of their first and second requests. */
interface Begun {
  readonly first: string[]
  readonly second: string[]
  /** Sends one more request of each session. Returns the pods that the requests reach. */
  again(): Promise<string[]>
}

/** Clients of one upstream, each with a session. */
export class Sessions {
  readonly #url: string
  readonly #agent: Agent
  #begun = 0

  constructor(url: string, agent: Agent) {
    this.#url = url
    this.#agent = agent
  }

  /** Returns the pod that each of `n` sessions reaches. `headers` returns the headers with the key of a session. */
  async reached(headers: (session: number) => Record<string, string>, n = SESSIONS): Promise<string[]> {
    return await each(n, async session => (await this.#send(headers(session))).pod)
  }

  /** Begins sessions as a browser does: first without a cookie, then with the cookies of the first answer. */
  async begin(n: number): Promise<Begun> {
    this.#begun += n
    const from = this.#begun
    const first: string[] = []
    const jars = await each(n, async i => {
      const { pod, cookies } = await this.#send({}, `?cookie=sid%3Dnew-${from + i}`)
      first[i] = pod
      return cookies.join('; ')
    })
    const again = () => each(n, async i => (await this.#send({ cookie: jars[i] ?? '' })).pod)
    return { first, second: await again(), again }
  }

  async #send(headers: Record<string, string>, query = ''): Promise<{ pod: string; cookies: string[] }> {
    const { backend, status, cookies } = await send(`${this.#url}${query}`, { headers, agent: this.#agent })
    return { pod: backend ?? `status ${status}`, cookies: cookies.map(cookie => cookie.split(';')[0] ?? '') }
  }
}

/** Runs `work` for 0 to `n` - 1, a few at a time. Returns the results in order. */
async function each<T>(n: number, work: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async () => {
    while (next < n) {
      const i = next
      next += 1
      results[i] = await work(i)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}
