import { text, json, type Answer } from './answer.ts'
import { isObject, type Json } from './json.ts'
import type { Item } from './store.ts'

/**
 * The list answers of the Admin API. `page` and `page_size` are ignored unless both are given. `name` and `uri` are patterns, and `label`
 * is a key (not `key:value`). A page past the end is `{}`, because Lua writes an empty array as a map.
 */
export function listAnswer(items: readonly Item[], query: URLSearchParams): Answer {
  const list = items.filter(item => matches(item, query)).map(shown)
  const [page, size] = [query.get('page'), query.get('page_size')]
  if (page === null || size === null) return json(200, { list, total: list.length })
  const pageSize = Number(size)
  if (!(pageSize >= 10 && pageSize <= 500)) return text(400, 'page_size must be between 10 and 500')
  const from = (Math.max(Number(page) || 1, 1) - 1) * pageSize
  const inPage = list.sort((a, b) => a.createdIndex - b.createdIndex).slice(from, from + pageSize)
  return json(200, { list: inPage.length === 0 ? {} : inPage, total: list.length })
}

/** One object as a GET returns it. */
export const shown = (item: Item): Pick<Item, 'key' | 'value' | 'createdIndex' | 'modifiedIndex'> => ({
  key: item.key,
  value: item.value,
  createdIndex: item.createdIndex,
  modifiedIndex: item.modifiedIndex
})

const matches = ({ value }: Item, query: URLSearchParams): boolean => {
  const [name, label, uri] = [query.get('name'), query.get('label'), query.get('uri')]
  if (name !== null && !found(value['name'], name)) return false
  if (label !== null && !(isObject(value['labels']) && label in value['labels'])) return false
  const uris = Array.isArray(value['uris']) ? value['uris'] : []
  return uri === null || [value['uri'], ...uris].some(one => found(one, uri))
}

const found = (value: Json | undefined, pattern: string): boolean => {
  if (typeof value !== 'string') return false
  try {
    return new RegExp(pattern).test(value)
  } catch {
    return value.includes(pattern)
  }
}
