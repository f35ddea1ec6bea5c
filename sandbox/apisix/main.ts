import { parseArgs } from 'node:util'
import { describeGateways } from './command.ts'
import { obeyParent, serveApisix, type ServeOptions } from './serve.ts'

/**
 * The stand-in as a process of its own: `node sandbox/apisix/main.ts --config '<json of ServeOptions>'`. It exits with its
 * parent, or at SIGTERM or SIGINT.
 */
const { values } = parseArgs({ options: { config: { type: 'string', default: '{}' } } })

try {
  const apisix = await serveApisix(JSON.parse(values.config) as ServeOptions)
  const end = (): void => {
    apisix.close().then(
      () => process.exit(0),
      () => process.exit(1)
    )
  }
  process.once('SIGTERM', end)
  process.once('SIGINT', end)
  process.once('disconnect', end)
  if (process.send) obeyParent(apisix)
  else console.log(JSON.stringify({ gateways: describeGateways(apisix) }))
} catch (err) {
  console.error(String(err))
  process.exitCode = 2
}
