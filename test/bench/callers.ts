import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { callHook, HookReply } from '../build/hook.ts'

export type HookCall = Pick<Parameters<typeof callHook>[0], 'host' | 'port' | 'from' | 'query'>

/** Calls the hooks as the ending pods' hosts do. A separate process, so that the stand-ins' work does not add to the measured times. */
export interface Callers {
  /** Calls all of these hooks at once. Rejects if one gets no answer. */
  call(hooks: readonly HookCall[]): Promise<readonly HookReply[]>
  close(): void
}

export type Called = { readonly replies: readonly HookReply[] } | { readonly problem: string }

export async function startCallers(): Promise<Callers> {
  const child = fork(fileURLToPath(new URL('callers-main.ts', import.meta.url)))
  const heard = <T>() =>
    new Promise<T>((resolve, reject) => {
      child.once('message', resolve)
      child.once('exit', () => reject(new Error('the callers of hooks ended')))
    })
  await heard()
  return {
    async call(hooks) {
      const called = heard<Called>()
      child.send(hooks)
      const answer = await called
      if ('problem' in answer) throw new Error(answer.problem)
      return answer.replies
    },
    close: () => child.disconnect()
  }
}
