import { readFileSync } from 'node:fs'

/** One preStop hook, from the kubelet's log. */
export interface HookCall {
  /** `namespace/name` of its pod. */
  readonly pod: string
  readonly container: string
  /** From the kubelet's call to the return, in ms. */
  readonly ms: number
  /** When it returned: ms since the epoch. */
  readonly at: number
}

const LINE = /^I(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) .*"(Running preStop hook|PreStop hook completed)"/

/** Returns the hooks in these logs that have returned within their grace, with or without an error, in the order of their return. */
export function hooksIn(logs: readonly string[]): readonly HookCall[] {
  const calls = logs.flatMap(log => {
    const begun = new Map<string, number>()
    return readFileSync(log, 'utf8')
      .split('\n')
      .flatMap((line): HookCall[] => {
        const found = LINE.exec(line)
        if (!found) return []
        const at = timeOf(found.slice(1, 7).map(Number))
        const what = found[7]
        const id = /containerID="([^"]+)"/.exec(line)?.[1] ?? ''
        if (what === 'Running preStop hook') begun.set(id, at)
        const since = begun.get(id)
        if (what !== 'PreStop hook completed' || since === undefined) return []
        const pod = /pod="([^"]+)"/.exec(line)?.[1] ?? ''
        const container = /containerName="([^"]+)"/.exec(line)?.[1] ?? ''
        return [{ pod, container, ms: at - since, at }]
      })
  })
  return calls.toSorted((a, b) => a.at - b.at)
}

/** Returns ms since the epoch. The lines of the log have no year, so the current year is used. */
const timeOf = ([month = 0, day = 0, hours = 0, minutes = 0, seconds = 0, micros = 0]: readonly number[]) =>
  new Date(new Date().getFullYear(), month - 1, day, hours, minutes, seconds).getTime() + micros / 1000
