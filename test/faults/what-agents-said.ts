import type { TestAgent } from '../build/agent.ts'

/** Returns a text with the answers to all hooks, and how often an agent got no CPU time, which explains some failures. */
export function whatAgentsSaid(logs: readonly TestAgent['lines'][]): string {
  const lines = logs.flat()
  const answers = lines
    .filter(({ msg }) => msg === 'hook answered')
    .map(
      ({ pod, result, evidence, elapsedMs }) =>
        `${String(pod)} ${String(result)}/${String(evidence)} after ${String(elapsedMs)} ms`
    )
  const away = lines.filter(({ msg }) => String(msg).startsWith('this process was away')).length
  return `${answers.join(', ')}; away ${away} times`
}
