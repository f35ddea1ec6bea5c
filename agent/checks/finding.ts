/** What one check found. `change` is empty where nothing has to be changed. */
export interface Finding {
  /** Stable, for scripts: `kubernetes`, `rbac`, `admin-api`, … */
  readonly name: string
  readonly level: 'ok' | 'warn' | 'fail'
  readonly what: string
  readonly change: string
}

/** A check finds at least one thing and never rejects for what it checks: that is a finding too. */
export type Check = (signal: AbortSignal) => Promise<readonly Finding[]>

export const ok = (name: string, what: string): Finding => ({ name, level: 'ok', what, change: '' })
export const warn = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'warn',
  what,
  change
})
export const fail = (name: string, what: string, change: string): Finding => ({
  name,
  level: 'fail',
  what,
  change
})

/** What an error says, for a finding. */
export const wordsOf = (err: unknown): string => (err instanceof Error ? err.message : String(err))
