import { callHook } from '../build/hook.ts'
import type { Called, HookCall } from './callers.ts'

// The callers' own process (callers.ts). Ends when its channel closes.

const send = (message: Called | 'ready') => void process.send?.(message)

process.on('message', (hooks: readonly HookCall[]) => {
  Promise.all(hooks.map(callHook)).then(
    replies => send({ replies }),
    (error: unknown) => send({ problem: String(error) })
  )
})
send('ready')
