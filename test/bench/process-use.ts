import { readFileSync } from 'node:fs'

/** The CPU time and memory of a process, as the kernel reports them. */
export interface ProcessUse {
  /** The user and system time since the start of the process, in ms. The kernel counts in steps of 10 ms. */
  readonly cpuMs: number
  readonly rssMb: number
  /** The highest memory so far. */
  readonly peakMb: number
}

const TICK_MS = 10

/** @throws Error if there is no such process */
export function useOf(pid: number): ProcessUse {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const megabytes = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 102.4) / 10
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
    rssMb: megabytes('VmRSS'),
    peakMb: megabytes('VmHWM')
  }
}
