import type { Called, HookCall } from './callers.ts'
import { rawCall } from './raw-call.ts'

// The process of the callers (callers.ts). It ends when its channel closes.

const send = (message: Called | 'ready') => void process.send?.(message)

process.on('message', (hooks: readonly HookCall[]) => {
  Promise.all(hooks.map(rawCall))
    .then(replies => send({ replies: replies.map(read => read()) }))
    .catch((error: unknown) => send({ problem: String(error) }))
})
send('ready')
