import { startLoad } from './generate.ts'
import type { LoadMessage, LoadOptions, LoadOrder } from './options.ts'

// The process of the load. Its only argument is its options as JSON. It sends its counts, and its result at the end.

const PROGRESS_MS = 200

const load = startLoad(JSON.parse(process.argv[2] ?? '{}') as LoadOptions)
const send = (message: LoadMessage) => void process.send?.(message, undefined, undefined, () => {})
const progress = setInterval(() => send({ type: 'progress', counts: load.counts() }), PROGRESS_MS)

async function stop() {
  const result = await load.stop()
  clearInterval(progress)
  process.send?.({ type: 'result', result } satisfies LoadMessage, () => process.disconnect?.())
}

process.on('message', ({ targets }: LoadOrder) =>
  targets ? void load.move(targets).then(() => send({ type: 'moved' })) : void stop()
)
process.once('disconnect', () => process.exit())
