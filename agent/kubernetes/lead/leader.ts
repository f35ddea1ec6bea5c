import type { Millis } from '../../rules/drain/facts.ts'

/** The leadership, for display. */
export interface Leadership {
  /** This agent acts as the leader: it holds the Lease, or no holder is known. */
  readonly leads: boolean
  /** The known holder of the Lease. */
  readonly holder: string | undefined
  /** `namespace/name` of the Lease; `undefined` if there is no election. */
  readonly lease: string | undefined
  /** The reason, in words. */
  readonly why: string
}

/**
 * Selects one of several agents for work that is needed only once. It saves work and guarantees nothing (decision 0008). Such work must
 * stay correct if two agents do it at once, and if the selected agent has just died.
 */
export interface Leader {
  /** False only while another agent is known to lead, and in the first moments, before that is known. */
  leads(): boolean
  status(now: Millis): Leadership
  /** Called after every change of the leader. Returns the function that unsubscribes. */
  onChange(listener: () => void): () => void
  /** Gives the Lease back, so that another agent need not wait for its end. Never rejects. */
  release(): Promise<void>
}

/** No election: this agent does all the work, like every other agent. */
export const alone = (why: string): Leader => ({
  leads: () => true,
  status: () => ({ leads: true, holder: undefined, lease: undefined, why }),
  onChange: () => () => {},
  release: () => Promise.resolve()
})
