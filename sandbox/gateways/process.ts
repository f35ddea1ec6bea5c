import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Gateways } from './start.ts'
import type { GatewaysMessage, GatewaysOptions } from './options.ts'

const READY_MS = 10_000
const END_MS = 3000

/** Starts the gateways in a process of their own, so that nothing else in the sandbox can stall them. */
export async function forkGateways(options: GatewaysOptions): Promise<Gateways> {
  const main = fileURLToPath(new URL('main.ts', import.meta.url))
  const child = fork(main, [JSON.stringify(options)], { detached: true })
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const close = async () => {
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS)
    if (child.connected) child.disconnect()
    await exited
    clearTimeout(timer)
  }
  try {
    const told = await new Promise<GatewaysMessage>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`not ready within ${READY_MS} ms`)), READY_MS)
      child.once('message', message => {
        clearTimeout(timer)
        resolve(message as GatewaysMessage)
      })
      void exited.then(() => reject(new Error('their process ended')))
    })
    if (told.type === 'failed') throw new Error(told.problem)
    return { admin: told.admin, gateways: told.gateways, close }
  } catch (error) {
    await close()
    throw new Error(`the gateways did not start: ${String(error)}`, { cause: error })
  }
}
