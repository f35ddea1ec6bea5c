import type { Undo } from './faults.ts'
import type { Listener } from './listener.ts'
import type { Store } from './store.ts'
import type { WatchStream } from './watch-stream.ts'

/** Misbehaviour of connections and of the server as a whole. */
export interface ConnectionFaults {
  /** Resets (RST) every open connection. */
  dropConnections(): void
  /** Half-open: the peers of open connections get no data and no error any more, not even ping replies. */
  freezeConnections(options?: { readonly newOnes?: boolean }): Undo
  /** HTTP/2 GOAWAY on every session; open streams continue. */
  goAway(): void
  /** Ends every open watch cleanly, as at its timeout. */
  endWatches(): void
  /** Every old resourceVersion and page token gets 410 from now on; open watches continue. */
  expireHistory(): void
  /** As after an etcd restore: the resourceVersion steps back, so the start of a resumed watch is in the future. */
  stepBack(versions: number): void
  /** Stops the API server for `downMs` (default 0). The restarted server has the same port, and answers 410 for all older versions. */
  restart(options?: { readonly downMs?: number; readonly goAway?: boolean }): Promise<void>
}

export function createConnectionFaults(
  listener: Listener,
  store: Store,
  watches: ReadonlySet<WatchStream>
): ConnectionFaults {
  const goAway = () => {
    for (const session of listener.sessions) if (!session.destroyed) session.goaway(0)
  }
  return {
    dropConnections() {
      for (const wire of listener.wires) wire.reset()
    },
    freezeConnections({ newOnes = false } = {}) {
      const frozen = [...listener.wires]
      for (const wire of frozen) wire.freeze()
      if (newOnes) listener.freezeNew(true)
      return () => {
        if (newOnes) {
          listener.freezeNew(false)
          for (const wire of listener.wires) wire.thaw()
        }
        for (const wire of frozen) wire.thaw()
      }
    },
    goAway,
    endWatches() {
      for (const watch of watches) watch.end()
    },
    expireHistory: () => store.forgetHistory(),
    stepBack: versions => store.forgetHistory(-versions),
    async restart({ downMs = 0, goAway: warned = false } = {}) {
      if (warned) {
        goAway()
        await new Promise(resolve => setTimeout(resolve, 5))
      }
      await listener.down()
      store.forgetHistory()
      if (downMs > 0) await new Promise(resolve => setTimeout(resolve, downMs))
      await listener.up()
    }
  }
}
