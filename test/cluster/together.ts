/** Scenarios that run in parallel. The test that plans a scenario also checks it. */
export interface Together {
  /** Plans a scenario. The returned function starts it and some of those planned after it, and returns its result. */
  plan<T>(scenario: () => Promise<T>): () => Promise<T>
}

/**
 * For one `describe` whose tests ask in the order of their plans; `width` scenarios then run at a time. None starts before
 * the first test asks, so earlier suites are over, and all have ended before the next suite.
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
        // The scenario's own test reports its failure, maybe much later.
        for (const one of planned.slice(index, index + width)) one().catch(() => {})
        return await begin()
      }
    }
  }
}
