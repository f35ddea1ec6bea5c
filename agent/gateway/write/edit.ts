import type { AdminObject } from '../apisix/admin-api.ts'
import type { Holder } from '../../rules/plan/holder.ts'
import { editNodes, isRecord, nodesPatch, type NodeEdit, type RawNodes } from '../apisix/nodes.ts'

/** An edit of one upstream inside an object. */
export interface HolderEdit extends NodeEdit {
  readonly path: Holder['path']
}

/** One request that carries out all edits of one object. */
type Write =
  | { readonly method: 'patch'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly method: 'put'; readonly body: Readonly<Record<string, unknown>> }

/**
 * One write for all edits of an object: a merge-PATCH, which changes only nodes. (The sub-path form, `PATCH /upstreams/web/nodes`,
 * does the same for an array, but can only edit one holder.) If a map has become an array since `object` was read, APISIX refuses the
 * `null` of the merge with 400. An array overwrites any list in APISIX, so the write needs the read-back.
 *
 * The nodes of traffic-split are inside arrays, which are replaced as a whole. So all of `rules` is sent. Consumers have no PATCH
 * (admin/consumers.lua), so the whole consumer is put.
 *
 * @throws RangeError if a holder would be left with no node
 */
export function writeFor(object: AdminObject, edits: readonly HolderEdit[]): Write {
  const whole = edited(object.value, edits)
  if (object.resource === 'consumers') return { method: 'put', body: writable(whole) }
  const body: Record<string, unknown> = {}
  for (const edit of edits) {
    if (edit.path[0] === 'plugins') {
      const rules = at(whole, ['plugins', 'traffic-split', 'rules'])
      body.plugins = { 'traffic-split': { rules } }
      continue
    }
    const nodes = nodesPatch(at(object.value, [...edit.path, 'nodes']) as RawNodes, edit)
    if (edit.path[0] === 'upstream') body.upstream = { nodes }
    else body.nodes = nodes
  }
  return { method: 'patch', body }
}

function edited(value: AdminObject['value'], edits: readonly HolderEdit[]): Record<string, unknown> {
  const whole = structuredClone(value) as Record<string, unknown>
  for (const edit of edits) {
    const upstream = at(whole, edit.path)
    if (isRecord(upstream)) upstream.nodes = editNodes(upstream.nodes as RawNodes, edit)
  }
  return whole
}

/** The object without its times, which APISIX writes itself. */
function writable(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { create_time: _created, update_time: _updated, ...rest } = value
  return rest
}

function at(value: unknown, path: Holder['path']): unknown {
  return path.reduce<unknown>(
    (inner, step) => (inner as Record<string | number, unknown> | undefined)?.[step],
    value
  )
}
