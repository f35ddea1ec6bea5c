/**
 * Milliseconds since the machine started (CLOCK_MONOTONIC): one scale for every process of the sandbox, so that "this
 * request arrived after that answer" can be said across them. Not the time of day.
 */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6
