/** Scenarios that run in parallel. The test that plans a scenario also checks it. */
export interface Together {
  /** Plans a scenario. The returned function starts it and the next planned scenarios, and returns its result. */
  plan<T>(scenario: () => Promise<T>): () => Promise<T>
}

/**
 * Runs about `width` scenarios at a time, if the tests of one `describe` ask for results in the order of their plans. The first
 * test that asks starts them, so earlier suites are over. All scenarios have ended before the next suite begins.
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
        // A failure is reported by the scenario's own test, maybe much later.
        for (const one of planned.slice(index, index + width)) one().catch(() => {})
        return await begin()
      }
    }
  }
}
