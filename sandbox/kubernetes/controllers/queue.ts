/** Keys to process, each once however often it was added. Work runs in a later turn of the event loop. */
interface Queue {
  add(key: string): void
  /** Adds the key after `ms`. */
  addLater(key: string, ms: number): void
  stop(): void
}

export function createQueue(reconcile: (key: string) => void): Queue {
  const dirty = new Set<string>()
  const timers = new Set<NodeJS.Timeout>()
  let turn: NodeJS.Immediate | undefined
  let stopped = false

  const run = () => {
    turn = undefined
    // Keys that are added meanwhile get a later turn, so that two controllers cannot starve everything else.
    const keys = [...dirty]
    dirty.clear()
    for (const key of keys) if (!stopped) reconcile(key)
  }
  const queue: Queue = {
    add(key) {
      if (stopped) return
      dirty.add(key)
      turn ??= setImmediate(run)
    },
    addLater(key, ms) {
      if (stopped) return
      const timer = setTimeout(() => {
        timers.delete(timer)
        queue.add(key)
      }, ms)
      timers.add(timer)
    },
    stop() {
      stopped = true
      if (turn) clearImmediate(turn)
      for (const timer of timers) clearTimeout(timer)
    }
  }
  return queue
}
