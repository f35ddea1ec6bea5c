import type { Millis } from '../drain/facts.ts'

/** The number of steps in which a weight rises. Each step is a write, which nodes that arrive together share. */
const STEPS = 10

/** The weight of a node that was added `age` ms ago. It is never 0, because a node without requests does not warm up. */
export function risingWeight(full: number, slowStartMs: Millis, age: Millis): number {
  if (age >= slowStartMs || full === 0) return full
  const step = Math.floor((age / slowStartMs) * STEPS) + 1
  return Math.max(1, Math.round((full * step) / STEPS))
}

/**
 * The time at which a listed node must have been added to have its present weight. With it, an agent that has just started continues
 * the rise from that weight.
 */
export function addedAtFor(weight: number, full: number, slowStartMs: Millis, now: Millis): Millis {
  const step = full === 0 ? STEPS : Math.ceil((weight * STEPS) / full)
  return now - (Math.max(0, step - 1) / STEPS) * slowStartMs - (step >= STEPS ? slowStartMs : 0)
}
