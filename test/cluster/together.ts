/** Scenarios that run side by side; each is judged by the test that asks for it. */
export interface Together {
  /** What it returns begins the scenario, and some of those that are planned after it, and gives its result. */
  plan<T>(scenario: () => Promise<T>): () => Promise<T>
}

/**
 * For one `describe`, whose tests ask in the order in which they plan: then it has `width` scenarios at a time. None begins before
 * the first test that asks, so what other suites did is over, and all have ended before the next suite.
 */
export function together(width: number): Together {
  const planned: (() => Promise<unknown>)[] = []
  const begun: Promise<unknown>[] = []
  after(async function () {
    this.timeout(300_000)
    await Promise.allSettled(begun)
  })
  return {
    plan<T>(scenario: () => Promise<T>) {
      let result: Promise<T> | undefined
      const begin = () => {
        if (!result) begun.push((result = scenario()))
        return result
      }
      const index = planned.push(begin) - 1
      return async () => {
        // A failure is that of the scenario's own test, which may look at it much later.
        for (const one of planned.slice(index, index + width)) one().catch(() => {})
        return await begin()
      }
    }
  }
}
