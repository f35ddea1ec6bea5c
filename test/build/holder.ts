import { nodeKey } from '../../agent/rules/drain/facts.ts'
import type { Holder, HolderNode } from '../../agent/rules/plan/holder.ts'

/** A node of a holder from text: `10.0.0.1:8080`, `10.0.0.1:8080=0` (weight), `10.0.0.1:80=1@-1` (priority), `[fd00::7]:80`, `api.example`. */
export function node(text: string): HolderNode {
  const match = /^(\[[^\]]+\]|[^:=]+)(?::(\d+))?(?:=(\d+))?(?:@(-\d+))?$/.exec(text)
  if (!match?.[1]) throw new Error(`not a node: ${text}`)
  const host = match[1].replace(/^\[|\]$/g, '')
  const port = match[2] === undefined ? undefined : Number(match[2])
  const key = nodeKey(host, port)
  const weight = Number(match[3] ?? 1)
  return { key, host, port, weight, raw: match[4] ? { host, port, weight, priority: Number(match[4]) } : key }
}

/** A hand-written upstream in map form; a test states only the differences. */
export const holder = (id: string, nodes: readonly string[], differs: Partial<Holder> = {}): Holder => ({
  key: `upstreams/${id}`,
  resource: 'upstreams',
  id,
  path: [],
  form: 'map',
  nodes: nodes.map(node),
  discovery: undefined,
  owner: 'unknown',
  labels: {},
  name: undefined,
  revision: 1,
  ...differs
})
