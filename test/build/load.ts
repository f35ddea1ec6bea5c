import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { stalledMs } from './stall.ts'

export interface LoadResult {
  readonly sent: number
  /** Every outcome except 200, in words. */
  readonly failures: readonly string[]
  /** How often each pod answered. */
  readonly by: Readonly<Record<string, number>>
}

/** Sends requests through the gateways' proxies at a steady rate, even if earlier ones have no answer yet. */
export interface Load {
  readonly result: LoadResult
  /** Resolves when the last answer has arrived. */
  stop(): Promise<LoadResult>
}

export function startLoad(urls: readonly string[], perSecond: number, path = '/'): Load {
  const agent = new Agent({ keepAlive: true })
  const stopped = new AbortController()
  const open = new Set<Promise<void>>()
  const failures: string[] = []
  const by: Record<string, number> = {}
  let sent = 0
  const result = {
    get sent() {
      return sent
    },
    failures,
    by
  }
  const send = async () => {
    const url = `${urls[sent % urls.length]}${path}`
    sent += 1
    try {
      const { status, body } = await get(url, agent)
      if (status === 200) by[body] = (by[body] ?? 0) + 1
      else failures.push(`${status} of ${url}`)
    } catch (error) {
      failures.push(`${(error as Error).message} of ${url}`)
    }
  }
  const running = (async () => {
    const began = performance.now()
    while (!stopped.signal.aborted) {
      const due = Math.floor(((performance.now() - began) / 1000) * perSecond)
      for (let missing = due - sent; missing > 0; missing--) {
        const one = send().finally(() => open.delete(one))
        open.add(one)
      }
      await wait(5, undefined, { signal: stopped.signal }).catch(() => {})
    }
    await Promise.all(open)
    agent.destroy()
  })()
  return {
    result,
    async stop() {
      stopped.abort()
      await running
      return result
    }
  }
}

/** The longest wait for an answer or its next part, in ms of this process's running time: the pods share the process. */
const ANSWER_MS = 10_000

/** One request; rejects if there is no whole answer. */
export function get(url: string, agent?: Agent): Promise<{ readonly status: number; readonly body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>()
  let heardAt = performance.now()
  const outgoing = request(url, { agent: agent ?? false, timeout: ANSWER_MS }, response => {
    let body = ''
    response.setEncoding('utf8')
    heardAt = performance.now()
    response.on('data', (chunk: string) => {
      body += chunk
      heardAt = performance.now()
    })
    response.once('error', reject)
    response.once('end', () => resolve({ status: response.statusCode ?? 0, body }))
  })
  outgoing.on('timeout', () => {
    const now = performance.now()
    const left = ANSWER_MS - (now - heardAt - stalledMs(heardAt, now))
    if (left > 0) outgoing.setTimeout(left)
    else outgoing.destroy(new Error(`no answer in ${ANSWER_MS / 1000} s`))
  })
  outgoing.once('error', reject)
  outgoing.end()
  return promise
}
