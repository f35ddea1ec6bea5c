import { parseArgs } from 'node:util'
import { systemClock } from '../../agent/base/clock.ts'
import { createLog } from '../../agent/base/log.ts'
import { createApp } from '../../agent/hook/app.ts'
import { listen, hookPolicy } from '../../agent/hook/listen.ts'
import { supervise } from '../../agent/start/run.ts'
import { pod } from './pod.ts'
import { manualHolds, serveParts } from './serve.ts'

/** For the tests of shutdown: the HTTP side of the agent in a separate process, while the parent controls its loop. */
const { values } = parseArgs({ options: { stuck: { type: 'boolean', default: false } } })
const holds = manualHolds(pod('web-1', { ips: ['127.0.0.1'] }))
const parts: ReturnType<typeof serveParts> = serveParts(holds, systemClock, {
  missing: () => (parts.slots.isOpen() ? [] : [{ part: 'serve', why: 'stopping' }])
})
const say = (message: unknown) => void process.send?.(message)
holds.onHeld = () => say('held')

const listening = await listen(createApp(parts), { host: '127.0.0.1', port: 0 }, hookPolicy(10))

process.on('message', message => {
  if (message === 'answer') for (const held of holds.held) held.answer()
})
const ending = supervise({
  parts: [{ name: 'serve', run: signal => Promise.race([listening.failed, aborted(signal)]) }],
  finishMs: 5000,
  clock: systemClock,
  log: createLog({ level: 'info' }),
  stopPromising() {
    parts.slots.close()
    say('stopping')
  },
  finishHolds: signal => parts.slots.emptied(signal),
  handOver: async () => {},
  async close() {
    parts.slots.releaseAll()
    await listening.close()
    if (!values.stuck) return
    // From here on nothing keeps the process alive, and this step never ends.
    process.disconnect?.()
    await new Promise(() => {})
  }
})
// Signals have an effect only from here on.
say({ port: listening.port })
const code = await ending
process.exitCode = code
if (process.connected) process.disconnect()

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
