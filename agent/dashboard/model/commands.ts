import type { GatewayView, Reach } from '../../report/snapshot/snapshot.ts'
import type { DrainView } from '../../report/snapshot/drain-view.ts'

/** A command (`line`) with which the user can check an observation of the agent, and the question that it answers (`shows`). */
export interface Command {
  readonly shows: string
  readonly line: string
}

/** The text quoted as one word for a shell. It is safe for any text, because other users choose the names. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

const hostOf = (ip: string) => (ip.includes(':') && !ip.startsWith('[') ? `[${ip}]` : ip)

/** The agent's own requests about one drain as commands, best evidence first. Tokens are shell variables. */
export function commandsFor(
  drain: Pick<DrainView, 'uid' | 'ips' | 'pod' | 'namespace' | 'gateways' | 'holders'>,
  gateways: readonly Pick<GatewayView, 'name' | 'ip'>[],
  reach: Reach
): readonly Command[] {
  const behind = drain.gateways.filter(({ grade }) => !grade).map(({ name }) => name)
  const asked = gateways.filter(({ name }) => behind.length === 0 || behind.includes(name)).slice(0, 3)
  const [ip = ''] = drain.ips
  const commands: Command[] = []
  for (const gateway of asked) {
    if (reach.barrier) {
      const url = `${reach.barrier.scheme}://${hostOf(gateway.ip)}:${reach.barrier.port}/v1/barrier/inflight`
      commands.push({
        shows: `${gateway.name}: is it sealed, and how much is in flight?`,
        line: `curl -s -H "Authorization: Bearer $BARRIER_TOKEN" ${quoted(url)} -d ${quoted(JSON.stringify({ uids: [drain.uid] }))}`
      })
    }
    if (reach.control) {
      const url = `http://${hostOf(gateway.ip)}:${reach.control.port}/v1/upstreams`
      commands.push({
        shows: `${gateway.name}: does it still list the pod? (one worker answers)`,
        line: `curl -s ${quoted(url)} | grep -F ${quoted(ip)}`
      })
    }
  }
  for (const { key } of drain.holders.filter(({ state }) => state !== 'removed').slice(0, 3)) {
    const [resource = '', id = ''] = key.split('/')
    const url = `${reach.admin}/apisix/admin/${resource}/${encodeURIComponent(id)}`
    commands.push({
      shows: `${key}: as the Admin API has it`,
      line: `curl -s -H "X-API-KEY: $ADMIN_KEY" ${quoted(url)}`
    })
  }
  commands.push({
    shows: 'the pod, as Kubernetes has it',
    line: `kubectl -n ${quoted(drain.namespace)} get pod ${quoted(drain.pod)} -o yaml`
  })
  return commands
}
