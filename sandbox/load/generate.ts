import { now } from '../now.ts'
import { createRandom } from '../random.ts'
import { nextShot } from './mix.ts'
import type { LoadCounts, LoadOptions, LoadResult } from './options.ts'
import { createAgent, send } from './send.ts'
import { openWebsocket } from './websocket.ts'
import { createTally } from './tally.ts'

interface Load {
  counts(): LoadCounts
  /** Sends to these from now on. Resolves when all earlier requests are over. */
  move(targets: readonly string[]): Promise<unknown>
  /** Starts no more requests and waits for the pending ones: at most their timeout. */
  stop(): Promise<LoadResult>
}

/** The interval at which due requests are started, in ms: too short to matter for this sandbox's latencies. */
const TICK_MS = 4

/** Sends `rate` requests a second. Those that are due while too many have no answer are not sent later either. */
export function startLoad(options: LoadOptions): Load {
  const { rate, path, timeoutMs } = options
  let { targets } = options
  const random = createRandom(options.seed)
  const agent = createAgent()
  const tally = createTally()
  const out = new Set<Promise<void>>()
  const startedAt = now()
  const mostPending = Math.max(20, rate / 4)
  let [sent, passed] = [0, 0]

  const one = async () => {
    const shot = nextShot(random, options.traffic)
    const url = new URL(path, targets[sent++ % targets.length])
    if (shot.kind === 'slow') url.searchParams.set('ms', String(shot.slowMs))
    tally.started()
    const sentAt = now()
    const outcome = await (shot.kind === 'websocket'
      ? openWebsocket(url, shot.slowMs, timeoutMs)
      : send(url, shot, agent, timeoutMs))
    tally.ended(shot.kind, outcome, sentAt, now())
  }

  const timer = setInterval(() => {
    const due = Math.floor(((now() - startedAt) / 1000) * rate)
    for (; passed < due; passed++) {
      if (out.size >= mostPending) continue
      const request = one()
      out.add(request)
      void request.finally(() => out.delete(request))
    }
  }, TICK_MS)

  return {
    counts: tally.counts,
    move(next) {
      targets = next
      return Promise.all(out)
    },
    async stop() {
      clearInterval(timer)
      await Promise.all(out)
      agent.destroy()
      return tally.result()
    }
  }
}
