/** Returns the next index into `weights`, without end. It skips an index of weight 0 while another weight is higher. */
export type RoundRobin = () => number

/**
 * Interleaved weighted round robin, as in lua-resty-balancer: turns go down from the highest weight in steps of the
 * greatest common divisor. Each turn visits the nodes whose weight reaches it. The first index is random, because
 * otherwise all workers would send their first request to the same node.
 */
export function createRoundRobin(weights: readonly number[], random: () => number = Math.random): RoundRobin {
  const highest = Math.max(...weights)
  const step = weights.reduce(gcd, 0)
  let index = Math.floor(random() * weights.length)
  let level = highest
  return () => {
    for (;;) {
      index += 1
      if (index >= weights.length) {
        index = 0
        level = level - step > 0 ? level - step : highest
      }
      if ((weights[index] ?? 0) >= level) return index
    }
  }
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b))
