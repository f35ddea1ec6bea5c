/**
 * A gateway as a pod: a real nginx with the plugin, and the stand-ins for APISIX's modules from the plugin's own tests. Its
 * upstreams and their revisions come from the store that it follows. A file holds the token. Environment variables:
 * STORE is the address of the store. HTTP_END is the server block of the Barrier API, as in the chart's values; default: a
 * server without TLS. PLUGIN is the folder of the plugin's Lua, or `none`; default: the folder in the image.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createConfigView } from '../../../sandbox/apisix/config-view.ts'
import { serveControlApi } from '../../../sandbox/apisix/control-api.ts'
import { readNodes } from '../../../sandbox/apisix/nodes.ts'
import { createStore } from '../../../sandbox/apisix/store.ts'
import { nginxConf } from '../../plugin/nginx-conf.ts'
import { follow } from './follow.ts'
import { BARRIER_PORT, CONTROL_PORT, PROXY_PORT } from './ports.ts'

const { STORE = '', TOKEN_FILE = '', PLUGIN, HTTP_END } = process.env
const WORKERS = 2
const DIRECTORY = '/tmp/gateway'
const DOOR = '127.0.0.1:9082'

mkdirSync(DIRECTORY, { recursive: true })
symlinkSync(TOKEN_FILE, `${DIRECTORY}/token`)
const conf = nginxConf(
  {
    dir: DIRECTORY,
    gateway: `0.0.0.0:${PROXY_PORT}`,
    h2: '127.0.0.1:9081',
    // Without the plugin nothing listens at the pod's address.
    barrier: `${PLUGIN === 'none' ? '127.0.0.1' : '0.0.0.0'}:${BARRIER_PORT}`,
    tls: '127.0.0.1:9282',
    door: DOOR,
    token: ''
  },
  {
    workers: WORKERS,
    ...(HTTP_END && { httpEnd: () => HTTP_END }),
    ...(PLUGIN === 'none' ? { load: PLUGIN } : { load: 'hook', ...(PLUGIN && { plugin: PLUGIN }) })
  }
)
writeFileSync(`${DIRECTORY}/nginx.conf`, conf)
const nginx = spawn('nginx', ['-p', DIRECTORY, '-e', '/dev/stderr', '-c', `${DIRECTORY}/nginx.conf`], {
  stdio: 'inherit'
})
nginx.once('exit', code => process.exit(code ?? 1))
// As in APISIX's image: nginx finishes the requests in flight first.
process.once('SIGTERM', () => nginx.kill('SIGQUIT'))

const config = createConfigView(createStore())
await serveControlApi({
  host: '0.0.0.0',
  port: CONTROL_PORT,
  accept: () => ({ config, turn: () => Promise.resolve() })
})

/** Returns the upstreams in the stand-in's form, and in APISIX's form, on which the workers report. */
function configuration() {
  const upstreams = config.list('upstreams').map(({ key, value }) => ({
    id: key.slice(key.lastIndexOf('/') + 1),
    type: 'roundrobin',
    nodes: readNodes(value['nodes']).map(({ host, port, weight }) => ({ host, port: port ?? 80, weight }))
  }))
  // The stand-in routes /ID to the upstream ID.
  const routes = upstreams.map(({ id }) => ({ id, uri: `/${id}`, upstream_id: id }))
  return {
    ...Object.fromEntries(upstreams.map(({ id, ...upstream }) => [id, upstream])),
    objects: { kinds: { upstreams, routes } }
  }
}

await follow(STORE, async event => {
  config.apply(event)
  const until = Date.now() + 10_000
  for (;;) {
    const put = fetch(`http://${DOOR}/config?revision=${event.revision}`, {
      method: 'POST',
      body: JSON.stringify(configuration())
    })
    const answer = await put.catch(() => undefined)
    await answer?.text()
    if (answer?.ok) return
    if (Date.now() > until) throw new Error('nginx does not take its configuration')
    await new Promise(resolve => setTimeout(resolve, 50))
  }
})
