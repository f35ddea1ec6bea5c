import type { Millis } from '../drain/facts.ts'

/** A weight rises in this many steps: each is a write, so nodes that come together share them. */
const STEPS = 10

/** The weight of a node that was added `age` ms ago. Never 0: a node that gets nothing does not warm up. */
export function risingWeight(full: number, slowStartMs: Millis, age: Millis): number {
  if (age >= slowStartMs || full === 0) return full
  const step = Math.floor((age / slowStartMs) * STEPS) + 1
  return Math.max(1, Math.round((full * step) / STEPS))
}

/**
 * When a node that is found listed must have been added for its weight to be what it is: an agent that has just started goes
 * on where the one before it stopped.
 */
export function addedAtFor(weight: number, full: number, slowStartMs: Millis, now: Millis): Millis {
  const step = full === 0 ? STEPS : Math.ceil((weight * STEPS) / full)
  return now - (Math.max(0, step - 1) / STEPS) * slowStartMs - (step >= STEPS ? slowStartMs : 0)
}
