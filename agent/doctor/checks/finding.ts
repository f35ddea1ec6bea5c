/** One result of a check. `change` is empty if nothing has to be changed. */
export interface Finding {
  /** Stable, for scripts: `kubernetes`, `rbac`, `admin-api`, … */
  readonly name: string
  readonly level: 'ok' | 'warn' | 'fail'
  readonly what: string
  readonly change: string
}

/** A check returns at least one finding. If it rejects, it could not be made: a failure with the error's message. */
export type Check = (signal: AbortSignal) => Promise<readonly Finding[]>

/** A finding without a problem. */
export const ok = (name: string, what: string): Finding => ({ name, level: 'ok', what, change: '' })
/** A part is missing, or works less well than it could. `change` is the remedy. */
export const warn = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'warn',
  what,
  change
})
/** A part that is configured does not work. The exit code becomes 1. */
export const fail = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'fail',
  what,
  change
})

/** An error's message, for a finding. */
export const wordsOf = (err: unknown): string => (err instanceof Error ? err.message : String(err))
