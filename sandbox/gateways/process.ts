import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { WITHIN_MS } from '../wait-for.ts'
import type { Gateways } from './start.ts'
import type {
  Confirmation,
  DiscoveredMessage,
  GatewaysMessage,
  GatewaysOptions,
  RunMessage
} from './options.ts'

const END_MS = 3000

export interface ForkedGateways extends Gateways {
  /** The confirmations of all gateways that have arrived here so far, in order. */
  confirmations(): readonly Confirmation[]
}

/** Starts the gateways in a process of their own, so that no other work of the sandbox can delay them. */
export async function forkGateways(options: GatewaysOptions): Promise<ForkedGateways> {
  const main = fileURLToPath(new URL('main.ts', import.meta.url))
  const child = fork(main, [JSON.stringify(options)], { detached: true })
  const confirmations: Confirmation[] = []
  const tell = (message: DiscoveredMessage | RunMessage) => void (child.connected && child.send(message))
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  // `close` comes after the last message; `exit` may come before it. If this process disconnects, only `exit` comes.
  const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
  const close = async () => {
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS)
    if (child.connected) child.disconnect()
    await exited
    clearTimeout(timer)
  }
  try {
    const told = await new Promise<Exclude<GatewaysMessage, { type: 'confirmed' }>>((resolve, reject) => {
      child.on('message', (message: GatewaysMessage) => {
        if (message.type === 'confirmed') confirmations.push(message)
        else resolve(message)
      })
      void closed.then(() => reject(new Error('their process ended')))
      setTimeout(() => reject(new Error(`not ready within ${WITHIN_MS / 1000} s`)), WITHIN_MS).unref()
    })
    if (told.type === 'failed') throw new Error(told.problem)
    return {
      admin: told.admin,
      gateways: told.gateways,
      confirmations: () => confirmations,
      discovered: (gateway, service, ports) => tell({ type: 'discovered', gateway, service, ports }),
      run: (gateway, on) => tell({ type: 'run', gateway, on }),
      close
    }
  } catch (error) {
    await close()
    throw new Error(`the gateways did not start: ${String(error)}`, { cause: error })
  }
}
