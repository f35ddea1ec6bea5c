import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Barrier } from './barrier.ts'
import type { Discovery } from './discovery.ts'
import { createPlaces, type Names, type Places } from './places.ts'
import {
  createWord,
  entryId,
  LISTS,
  NAMES,
  type Saying,
  type ToldWord,
  type Word,
  type Words
} from './word.ts'
import type { Worker } from './worker.ts'

interface WordsOptions {
  /** The workers that serve. */
  readonly workers: () => readonly Worker[]
  readonly barrier: Barrier
  readonly discovery: Discovery | undefined
  readonly names: Names | undefined
}

/** In ms: how often a worker checks by itself, how long a put waits, and how often names and discovery are resolved. */
const LOOK = 20
const HEAR = 4
const MOVING = 250

interface Speaker {
  readonly word: Word
  readonly places: Places
  lookedUp: number
}

export function createWords({ workers, barrier, discovery, names }: WordsOptions): Words {
  const { entries } = barrier
  const speakers = new Map<Worker, Speaker>()
  let timer: NodeJS.Timeout | undefined
  let stop = (): void => {}

  const speakerOf = (worker: Worker): Speaker => {
    const known = speakers.get(worker)
    if (known) return known
    const word = createWord(entries, () => places)
    const places: Places = createPlaces(worker.config, discovery, names, ips => word.void(ips))
    const made = { word, places, lookedUp: performance.now() }
    speakers.set(worker, made)
    return made
  }
  const look = (anew = false): void => {
    const serving = workers()
    for (const [worker, { places }] of speakers) {
      if (serving.includes(worker)) continue
      places.close()
      speakers.delete(worker)
    }
    entries.sweep()
    if (entries.size === 0) return
    for (const worker of serving) {
      if (worker.frozen || barrier.unfit(worker.pid).length > 0) continue
      const speaker = speakerOf(worker)
      if (anew || performance.now() - speaker.lookedUp >= MOVING) {
        for (const ip of speaker.places.lookUp()) speaker.word.touch(ip)
        speaker.lookedUp = performance.now()
      }
      speaker.word.speak()
    }
  }
  const complete = (since: number): boolean =>
    workers().every(worker => (speakers.get(worker)?.word.said ?? -1) >= since)

  return {
    want: () => {
      if (timer) return
      timer = setInterval(() => look(), LOOK)
      timer.unref()
      stop = entries.onChange(ip => {
        for (const { word } of speakers.values()) word.touch(ip)
      })
    },
    hear: async stored => {
      const since = Math.max(0, ...stored.map(entry => entry.since))
      // a seal may depend on the present state of discovery
      look(true)
      if (!complete(since)) await wait(HEAR)
    },
    of: entry => {
      if (!timer) return undefined
      const serving = workers()
      const said = serving.flatMap(worker => {
        const word = speakers.get(worker)?.word
        const saying = word?.said === undefined ? undefined : word.of(entryId(entry))
        return word && saying && saying.generation >= entry.since ? [{ saying, hidden: word.hidden }] : []
      })
      const all = union(said.map(({ saying }) => saying))
      const hidden = Math.max(0, ...said.map(one => one.hidden))
      const told = { said: said.length, asked: serving.length, ...all, hidden }
      if (serving.length === 0 || said.length < serving.length) return told
      const tag = createHash('md5')
        .update(JSON.stringify([all, hidden]))
        .digest('hex')
      return { ...told, tag: tag.slice(0, 16) }
    },
    close: () => {
      clearInterval(timer)
      stop()
      for (const { places } of speakers.values()) places.close()
    }
  }
}

/** Merges the reports so that every reason against a seal stays. */
function union(
  sayings: readonly Saying[]
): Pick<ToldWord, 'places' | 'sole' | 'succeeded' | 'others' | 'cut'> {
  const lists = new Map<string, number>()
  for (const { others } of sayings)
    for (const [list, n] of others) lists.set(list, Math.max(lists.get(list) ?? 0, n))
  const sorted = [...lists].sort(([a], [b]) => (a < b ? -1 : 1))
  const left = sorted.slice(LISTS).reduce((sum, [, n]) => sum + n, 0)
  return {
    places: Math.max(0, ...sayings.map(({ places }) => places)),
    sole: [...new Set(sayings.flatMap(({ sole }) => sole))].sort().slice(0, NAMES),
    succeeded: [...new Set(sayings.flatMap(({ succeeded }) => succeeded))].sort().slice(0, NAMES),
    others: sorted.slice(0, LISTS).map(([list, places]) => {
      const [more, nodes] = list.split('/')
      return { places, nodes: (nodes ?? '').split(','), more: Number(more) }
    }),
    cut: Math.max(0, ...sayings.map(({ cut }) => cut)) + left
  }
}
