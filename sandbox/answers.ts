import type { HookRecord } from './kubelet/hook.ts'

/** Counts the outputs of hooks: `{"removed (observed)": 5, "no answer": 1}`. */
export function countAnswers(hooks: readonly HookRecord[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { output } of hooks) {
    const answer = readAnswer(output)
    counts[answer] = (counts[answer] ?? 0) + 1
  }
  return counts
}

/** The result and evidence in the last line, which is the agent's ack. curl's errors and an empty output (a fallback) are `no answer`. */
function readAnswer(output: string): string {
  try {
    const ack = JSON.parse(output.trim().split('\n').at(-1) ?? '') as {
      result?: unknown
      evidence?: unknown
    }
    return `${String(ack.result)} (${String(ack.evidence)})`
  } catch {
    return 'no answer'
  }
}
