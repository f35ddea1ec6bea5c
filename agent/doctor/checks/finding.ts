/** One result of a check. `change` is empty if nothing has to be changed. */
export interface Finding {
  /** Stable, for scripts: `kubernetes`, `rbac`, `admin-api`, … */
  readonly name: string
  readonly level: 'ok' | 'warn' | 'fail'
  readonly what: string
  readonly change: string
}

/** A check returns at least one finding. A failure that the check detects is a finding, and no rejection. */
export type Check = (signal: AbortSignal) => Promise<readonly Finding[]>

/** A finding without a problem. */
export const ok = (name: string, what: string): Finding => ({ name, level: 'ok', what, change: '' })
/** A problem in spite of which the agent works. `change` is the remedy. */
export const warn = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'warn',
  what,
  change
})
/** A problem with which the agent cannot do its work. The exit code becomes 1. */
export const fail = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'fail',
  what,
  change
})

/** An error's message, for a finding. */
export const wordsOf = (err: unknown): string => (err instanceof Error ? err.message : String(err))
