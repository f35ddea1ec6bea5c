import { systemClock } from '../../agent/base/clock.ts'
import { createApp } from '../../agent/hook/app.ts'
import { listen, hookPolicy, pagePolicy } from '../../agent/hook/listen.ts'
import { serveWebhook } from '../../agent/hook/inject/server.ts'
import { selfSigned } from '../../sandbox/kubernetes/tls.ts'
import { pod } from './pod.ts'
import { manualHolds, memoryLog, serveParts } from './serve.ts'

/** The agent's three ports in a separate process, to measure their memory alone. Every hook is answered at once. */
const HOST = 'apisix-drain.apisix.svc'
const at = { host: '127.0.0.1', port: 0 }
const holds = manualHolds(pod('web-1', { ips: ['127.0.0.1'] }))
holds.onHeld = () => holds.held.splice(0).forEach(held => held.answer())
const parts = serveParts(holds, systemClock)
const hooks = await listen(createApp(parts, 'hooks'), at, hookPolicy(2000))
const page = await listen(createApp(parts, 'pages'), at, pagePolicy)
const { ca, cert, key } = await selfSigned([HOST])
const settings = { host: HOST, certificateFile: 'c', keyFile: 'k', hook: 'curl' } as const
const webhook = await serveWebhook(
  at,
  { ...settings, url: 'http://a:1/v1/prestop', volumes: [] },
  memoryLog().log,
  systemClock
)
webhook.use({ certificate: cert, key })
process.send?.({
  hooks: hooks.port,
  page: page.port,
  webhook: webhook.port,
  ca,
  servername: HOST
})
