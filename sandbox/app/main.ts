import { flushCompileCache } from 'node:module'
import { placeOf } from '../kubelet/addresses.ts'
import { now } from '../now.ts'
import { createReport, type AppMessage } from './report.ts'
import { createApp } from './server.ts'

// One pod of the sandbox: POD_NAME, POD_IP, PORT, AT_SIGTERM and RATE come from its environment, as in a real pod.

const { POD_NAME = 'app', POD_IP = '127.0.0.1', PORT = '8080', AT_SIGTERM, RATE } = process.env

const send = (message: AppMessage) => void process.send?.(message, undefined, undefined, () => {})
const report = createReport(send)
const atSigterm = AT_SIGTERM === 'drop' ? 'drop' : 'finish'
const app = createApp(POD_NAME, arrival => report.arrival(arrival), atSigterm, Number(RATE ?? Infinity))
app.server.on('request', (_, response) => response.once('close', () => report.answered(now())))

async function end() {
  await app.terminate()
  report.flush()
  // Earlier messages are sent first.
  if (process.send) process.send({ type: 'ended' } satisfies AppMessage, () => process.exit(0))
  else process.exit(0)
}

process.once('SIGTERM', () => void end())
// If the sandbox exits and does not end this pod, the pod exits too.
process.once('disconnect', () => process.exit(1))

app.server.listen(placeOf(POD_IP, Number(PORT)), () => {
  send({ type: 'ready', at: now() })
  // Writes the compile cache: the next pod starts in half the time, and slows the measured processes less.
  setImmediate(flushCompileCache)
})
