import type { Millis } from '../drain/facts.ts'

/** A weight rises in this many steps. Each is a write, so nodes that arrive together share them. */
const STEPS = 10

/** The weight of a node that was added `age` ms ago. Never 0: a node without requests does not warm up. */
export function risingWeight(full: number, slowStartMs: Millis, age: Millis): number {
  if (age >= slowStartMs || full === 0) return full
  const step = Math.floor((age / slowStartMs) * STEPS) + 1
  return Math.max(1, Math.round((full * step) / STEPS))
}

/**
 * The time at which a listed node must have been added to have its present weight: an agent that has just started
 * continues where the previous one stopped.
 */
export function addedAtFor(weight: number, full: number, slowStartMs: Millis, now: Millis): Millis {
  const step = full === 0 ? STEPS : Math.ceil((weight * STEPS) / full)
  return now - (Math.max(0, step - 1) / STEPS) * slowStartMs - (step >= STEPS ? slowStartMs : 0)
}
