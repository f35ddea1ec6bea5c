import { isDeepStrictEqual } from 'node:util'
import { badRequest, invalid } from './errors.ts'

type Fields = Record<string, unknown>

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** RFC 7396. Pure: the target stays unchanged. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch
  const merged: Fields = isFields(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete merged[key]
    else merged[key] = mergePatch(merged[key], value)
  return merged
}

const OPERATIONS = new Set<unknown>(['add', 'remove', 'replace', 'move', 'copy', 'test'])

const steps = (pointer: string): string[] => {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) throw badRequest(`invalid JSON pointer: ${pointer}`)
  return pointer
    .slice(1)
    .split('/')
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

const missing = (pointer: string) =>
  invalid(`the server rejected our request due to an error in our request: ${pointer} does not exist`)

function at(document: unknown, pointer: string): unknown {
  let value = document
  for (const step of steps(pointer)) {
    const inner: unknown = Array.isArray(value)
      ? value[Number(step)]
      : isFields(value) && Object.hasOwn(value, step)
        ? value[step]
        : undefined
    if (inner === undefined) throw missing(pointer)
    value = inner
  }
  return value
}

/** Changes the value at `pointer` in a document that the caller owns. `value` undefined removes it. */
function put(document: unknown, pointer: string, value: unknown, insert: boolean): unknown {
  const path = steps(pointer)
  const last = path.pop()
  if (last === undefined) return value
  const parent = at(
    document,
    path.map(step => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
  )
  if (Array.isArray(parent)) {
    const index = last === '-' ? parent.length : Number(last)
    const limit = insert ? parent.length : parent.length - 1
    if (!Number.isInteger(index) || index < 0 || index > limit) throw missing(pointer)
    if (value === undefined) parent.splice(index, 1)
    else parent.splice(index, insert ? 0 : 1, value)
  } else if (isFields(parent)) {
    if (!insert && !Object.hasOwn(parent, last)) throw missing(pointer)
    if (value === undefined) delete parent[last]
    else parent[last] = value
  } else throw missing(pointer)
  return document
}

/** RFC 6902. As at the API server, a failed `test` or a missing path is a 422, and a malformed patch a 400. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest('json: cannot unmarshal the body into a jsonpatch.Patch')
  let document: unknown = structuredClone(target)
  for (const operation of patch as unknown[]) {
    if (!isFields(operation) || typeof operation.path !== 'string' || !OPERATIONS.has(operation.op))
      throw badRequest('a JSON patch operation needs a known op and a path')
    const { op, path, value, from } = operation as {
      op: string
      path: string
      value?: unknown
      from?: string
    }
    if ((op === 'move' || op === 'copy') && typeof from !== 'string') throw badRequest(`${op} needs from`)
    const moved = from === undefined ? undefined : structuredClone(at(document, from))
    if (op === 'test') {
      if (!isDeepStrictEqual(at(document, path), value))
        throw invalid(
          `the server rejected our request due to an error in our request: testing value ${path} failed`
        )
    } else if (op === 'remove') document = put(document, path, undefined, false)
    else if (op === 'replace') document = put(document, path, value, false)
    else {
      if (op === 'move') document = put(document, from!, undefined, false)
      document = put(document, path, op === 'add' ? value : moved, true)
    }
  }
  return document
}
