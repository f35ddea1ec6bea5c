/**
 * One pod in place of APISIX's etcd and Admin API, for the gateways of the suite: the stand-in's store, its Admin API, and a
 * port on which gateways follow the store. ADMIN_KEY is an environment variable.
 */
import { createServer } from 'node:http'
import { serveAdminApi } from '../../../sandbox/apisix/admin-api.ts'
import { createStore } from '../../../sandbox/apisix/store.ts'
import type { StoreEvent } from '../../../sandbox/apisix/store.ts'
import { ADMIN_PORT, FOLLOW_PORT } from './ports.ts'

const store = createStore()
await serveAdminApi({ store, host: '0.0.0.0', port: ADMIN_PORT, adminKey: process.env['ADMIN_KEY'] ?? '' })

/** Sends one line for each write: first the latest write of every object that exists, in order, then each new one. */
const follow = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/jsonl' })
  const tell = (event: StoreEvent) => response.write(`${JSON.stringify(event)}\n`)
  const items = store.resources().flatMap(resource => store.list(resource))
  for (const item of items.toSorted((a, b) => a.modifiedIndex - b.modifiedIndex))
    tell({ kind: 'put', revision: item.modifiedIndex, item })
  response.on('close', store.watch(tell))
})
follow.listen(FOLLOW_PORT)
process.once('SIGTERM', () => process.exit(0))
