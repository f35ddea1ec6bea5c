/**
 * Milliseconds since the machine started (CLOCK_MONOTONIC): one scale for every process of the sandbox, so that times
 * of different processes can be compared. Not the time of day.
 */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6
