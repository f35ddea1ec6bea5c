import type { DiscoveredMessage, GatewaysMessage, GatewaysOptions, RunMessage } from './options.ts'
import { startGateways } from './start.ts'

// The process of the gateways. Its only argument is its options as JSON. It ends when its channel closes.

const send = (message: GatewaysMessage) => void process.send?.(message, undefined, undefined, () => {})

try {
  const options = JSON.parse(process.argv[2] ?? '{}') as GatewaysOptions
  const running = await startGateways(options, confirmation => send({ type: 'confirmed', ...confirmation }))
  process.on('message', (message: DiscoveredMessage | RunMessage) =>
    message.type === 'run'
      ? running.run(message.gateway, message.on)
      : running.discovered(message.gateway, message.service, message.ports)
  )
  process.once('disconnect', () => void running.close().finally(() => process.exit()))
  send({ type: 'ready', admin: running.admin, gateways: running.gateways })
} catch (error) {
  send({ type: 'failed', problem: String(error) })
  process.exitCode = 1
  process.disconnect?.()
}
