import { doubled } from '../../rules/drain/times.ts'

export interface Backoff {
  /** Returns the wait after a failure, in ms. `livedMs`: how long the connection was healthy before it. */
  failed(livedMs: number): number
}

/**
 * Doubles, with jitter over the upper half, so that agents of many clusters behind one balancer do not reconnect together. Starts
 * over once a connection has lived for `healthyMs`, because a stream that syncs and breaks at once is not healthy.
 */
export function createBackoff({
  firstMs = 50,
  mostMs = 5_000,
  healthyMs = 10_000,
  random = Math.random
}: {
  firstMs?: number
  mostMs?: number
  healthyMs?: number
  random?: () => number
} = {}): Backoff {
  let failures = 0
  return {
    failed(livedMs) {
      if (livedMs >= healthyMs) failures = 0
      const ceiling = doubled({ first: firstMs, longest: mostMs }, failures)
      failures += 1
      return ceiling * (0.5 + random() / 2)
    }
  }
}
