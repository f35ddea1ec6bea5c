import type { IncomingMessage } from 'node:http'
import { OWNER_AGENT } from '../../sandbox/owner/put.ts'
import { WRONG_KEY, type FaultRule } from '../../sandbox/apisix/faults.ts'
import type { Break, Stage } from './stage.ts'
import type { Api } from '../../sandbox/apisix/api-server.ts'

/** Returns all Admin APIs: in standalone mode one for each gateway, otherwise a single one. */
const admins = ({ rig }: Stage): ReadonlySet<Api> => {
  const own = rig.gateways.flatMap(gateway => (gateway.running && gateway.admin ? [gateway.admin] : []))
  return new Set(own.length > 0 ? own : [rig.admin])
}

const inject =
  (rule: FaultRule): Break =>
  stage => {
    const undo = [...admins(stage)].map(({ faults }) => faults.inject(rule))
    return () => undo.forEach(one => one())
  }

export const SLOW_LISTING_MS = 1200

export const ADMIN_FAULTS = {
  'Admin API: 500': inject({ fault: { kind: 'status', status: 500 } }),
  'Admin API: 503 to writes': inject({ fault: { kind: 'status', status: 503 }, method: 'PATCH' }),
  'Admin API: 401': inject({ fault: { kind: 'status', status: 401 } }),
  'Admin API: other key': inject({ fault: WRONG_KEY }),
  'Admin API: 200 with rubbish': inject({
    fault: { kind: 'status', status: 200, body: '{"list":[{}],"key":1}' }
  }),
  'Admin API: hangs': inject({ fault: { kind: 'hang' } }),
  'Admin API: slow': inject({ fault: { kind: 'slow', ms: 300 } }),
  // A listing is `SLOW_LISTING_MS` old when it arrives.
  'Admin API: slow listings': inject({
    fault: { kind: 'slow', ms: SLOW_LISTING_MS },
    method: 'GET',
    path: '/apisix/admin/upstreams',
    exactly: true
  }),
  'Admin API: applies and is silent': inject({ fault: { kind: 'applied-but-timed-out' }, method: 'PATCH' }),
  'Admin API: closes mid-body': inject({ fault: { kind: 'close-mid-body' } }),
  'Admin API: connections break': inject({ fault: { kind: 'reset' } }),
  'Admin API: refuses connections': async stage => {
    const listeners = [...admins(stage)].map(({ listener }) => listener)
    for (const listener of listeners) await listener.reach('refused')
    return async () => {
      // If a gateway has restarted meanwhile, another listener has its port.
      const running = new Set([...admins(stage)].map(({ listener }) => listener))
      for (const listener of listeners) if (running.has(listener)) await listener.reach('open')
    }
  },
  // The owner writes between the agent's read and the agent's write.
  'owner: writes in between': stage => {
    const servers = [...admins(stage)].map(({ listener }) => listener.server)
    const write = ({ method, headers }: IncomingMessage) => {
      if (method === 'PATCH' && headers['user-agent'] !== OWNER_AGENT) stage.ownerWrites()
    }
    for (const server of servers) server.prependListener('request', write)
    return () => servers.forEach(server => server.off('request', write))
  },
  'etcd: down': ({ rig }) => {
    rig.apisix.store.health = 'down'
    return () => (rig.apisix.store.health = 'up')
  },
  'etcd: black-holed': ({ rig }) => {
    rig.apisix.store.health = 'black-holed'
    return () => (rig.apisix.store.health = 'up')
  }
} satisfies Readonly<Record<string, Break>>
