import { isFields } from './patch.ts'

type Fields = Record<string, unknown>

/** Lists of the built-in kinds that merge element by element, with their keys (patchMergeKey in k8s.io/api). All others are replaced. */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  conditions: ['type'],
  containers: ['name'],
  initContainers: ['name'],
  env: ['name'],
  ports: ['containerPort', 'port'],
  volumes: ['name'],
  volumeMounts: ['mountPath'],
  imagePullSecrets: ['name'],
  ownerReferences: ['uid'],
  addresses: ['type'],
  podIPs: ['ip'],
  hostIPs: ['ip'],
  secrets: ['name']
}

const SETS = new Set(['finalizers'])

const isDirective = (key: string): boolean =>
  key === '$patch' || key === '$retainKeys' || key.startsWith('$setElementOrder/')

function mergeList(
  target: readonly unknown[],
  patch: readonly unknown[],
  keys: readonly string[]
): unknown[] {
  let merged = [...target]
  for (const element of patch) {
    if (!isFields(element)) continue
    if (element.$patch === 'replace') return patch.filter(other => other !== element)
    const key = keys.find(candidate => candidate in element)
    const same = (other: unknown) => key !== undefined && isFields(other) && other[key] === element[key]
    if (element.$patch === 'delete') merged = merged.filter(other => !same(other))
    else if (merged.some(same))
      merged = merged.map(other => (same(other) ? strategicMerge(other, element) : other))
    else merged.push(strategicMerge({}, element))
  }
  return merged
}

/** Strategic merge patch, in the forms that clients of the sandbox use: keyed lists, sets, `$patch`, `$deleteFromPrimitiveList`. Pure. */
export function strategicMerge(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch
  if (patch.$patch === 'replace')
    return Object.fromEntries(Object.entries(patch).filter(([key]) => key !== '$patch'))
  if (patch.$patch === 'delete') return {}
  const merged: Fields = isFields(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (isDirective(key)) continue
    const removed = /^\$deleteFromPrimitiveList\/(.+)$/.exec(key)?.[1]
    if (removed !== undefined) {
      const gone = new Set(Array.isArray(value) ? (value as unknown[]) : [])
      const list = merged[removed]
      if (Array.isArray(list)) merged[removed] = list.filter(item => !gone.has(item))
      continue
    }
    const before = merged[key]
    if (value === null) delete merged[key]
    else if (Array.isArray(value)) {
      const old: unknown[] = Array.isArray(before) ? before : []
      const keys = MERGE_KEYS[key]
      if (SETS.has(key)) merged[key] = [...new Set([...old, ...(value as unknown[])])]
      else if (keys && value.every(isFields)) merged[key] = mergeList(old, value, keys)
      else merged[key] = value
    } else merged[key] = strategicMerge(before, value)
  }
  return merged
}
