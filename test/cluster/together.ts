/** Scenarios that run in parallel. The test that plans a scenario also checks it. */
export interface Together {
  /** Plans a scenario. The returned function starts it and the next planned scenarios, and returns its result. */
  plan<T>(scenario: () => Promise<T>): () => Promise<T>
}

/**
 * Runs `width` scenarios at a time, if the tests of one `describe` ask for results in the order of their plans. Beside a slow one, more
 * of the next ones start. The first test that asks starts them, so earlier suites are over. All scenarios have ended before the
 * next suite begins.
 */
export function together(width: number): Together {
  const planned: (() => Promise<unknown>)[] = []
  const begun: Promise<unknown>[] = []
  let [next, end, running] = [0, 0, 0]
  after(async function () {
    this.timeout(300_000)
    await Promise.allSettled(begun)
  })
  const fill = () => {
    for (; running < width && next < Math.min(end, planned.length); next++) {
      running++
      const one = planned[next]?.().catch(() => {}) // the scenario's own test reports it, maybe much later
      void one?.then(() => (running--, fill()))
    }
  }
  return {
    plan<T>(scenario: () => Promise<T>) {
      const { promise, resolve } = Promise.withResolvers<T>()
      const begin = () => {
        resolve(scenario())
        begun.push(promise)
        return promise
      }
      const index = planned.push(begin) - 1
      return async () => {
        next = Math.max(next, index)
        end = index + 2 * width - 1
        fill()
        return await promise
      }
    }
  }
}
