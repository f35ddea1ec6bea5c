import type { Millis } from '../drain/facts.ts'

/** Who leads, as it is shown. */
export interface Leadership {
  /** This agent acts as the leader: it holds the Lease, or no holder is known. */
  readonly leads: boolean
  /** Who holds the Lease, as far as is known. */
  readonly holder: string | undefined
  /** `namespace/name` of the Lease; `undefined` where there is no election. */
  readonly lease: string | undefined
  /** Why it is so, in words. */
  readonly why: string
}

/**
 * Selects one of several agents for work that is needed only once. It saves work and guarantees nothing (decision 0008): such work must
 * stay correct if two agents do it at once, and if the selected agent has just died.
 */
export interface Leader {
  /** False only while another agent is known to lead, and for the first moments before that could be known. */
  leads(): boolean
  /** Another agent leads and does what it should: its removals are looked for before we write them ourselves. */
  yields(): boolean
  /** We had to do what was the leader's turn: it is not waited for again for a while. */
  missed(): void
  status(now: Millis): Leadership
  /** After every change of who leads. Returns what ends it. */
  onChange(listener: () => void): () => void
  /** Gives the Lease back, so that another agent need not wait until it runs out. Never rejects. */
  release(): Promise<void>
}

/** No election: this agent does all the work, whatever others do. */
export const alone = (why: string): Leader => ({
  leads: () => true,
  yields: () => false,
  missed: () => {},
  status: () => ({ leads: true, holder: undefined, lease: undefined, why }),
  onChange: () => () => {},
  release: () => Promise.resolve()
})
