import type { Word } from '../../rules/proof/verdict.ts'
import type { WorkersWord } from '../apisix/barrier-wire.ts'

/** Merges the words about all addresses of a pod; `undefined` if the word about one of them is missing. */
export function wordOf(words: readonly (WorkersWord | undefined)[]): Word | undefined {
  const told = words.filter(word => word !== undefined)
  if (told.length === 0 || told.length < words.length) return undefined
  const tags = told.flatMap(({ tag, said, asked }) => (tag !== undefined && said === asked ? [tag] : []))
  const complete = tags.length === told.length
  return {
    complete,
    said: Math.min(...told.map(({ said }) => said)),
    asked: Math.max(...told.map(({ asked }) => asked)),
    places: told.reduce((sum, { places }) => sum + places, 0),
    hidden: Math.max(...told.map(({ hidden }) => hidden)),
    sole: [...new Set(told.flatMap(({ sole }) => sole))],
    succeeded: [...new Set(told.flatMap(({ succeeded }) => succeeded))],
    others: told.flatMap(({ others }) => others),
    cut: told.reduce((sum, { cut }) => sum + cut, 0),
    tags: complete ? tags : [],
    l4: told.every(({ l4 }) => l4 !== false)
  }
}
