import { readFileSync } from 'node:fs'

/** One preStop hook, as the kubelet's log tells it. */
export interface HookCall {
  /** `namespace/name` of its pod. */
  readonly pod: string
  readonly container: string
  /** From the kubelet's call to the return, in ms. */
  readonly ms: number
  /** When it returned: ms since midnight. */
  readonly at: number
}

const LINE = /^I\d{4} (\d\d):(\d\d):(\d\d\.\d{6}) .*"(Running preStop hook|PreStop hook completed)"/

/** The hooks that have returned within their grace, with or without an error, in the order of their return. */
export function hooksIn(logs: readonly string[]): readonly HookCall[] {
  const calls = logs.flatMap(log => {
    const begun = new Map<string, number>()
    return readFileSync(log, 'utf8')
      .split('\n')
      .flatMap((line): HookCall[] => {
        const found = LINE.exec(line)
        if (!found) return []
        const [, hours, minutes, seconds, what = ''] = found
        const at = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000
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
