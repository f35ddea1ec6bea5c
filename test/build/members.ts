import { wordOf } from '../../agent/gateway/barrier/barrier-reading.ts'
import type { WorkersWord } from '../../agent/gateway/apisix/barrier-wire.ts'
import { firstSeen, ghostsIn, seenAtGateways, seenAtOwner } from '../../agent/rules/members/behind.ts'
import { gatewayEndsAt, type Heard } from '../../agent/rules/proof/observed.ts'
import { HOLD_ALL, judge } from '../../agent/rules/proof/proof.ts'
import { letGoOf } from '../../agent/round/entries/seal-decision.ts'
import { createAddressOwnership } from '../../agent/round/ownership.ts'
import type { Drain } from '../../agent/rules/drain/drain.ts'
import type { PodFact } from '../../agent/rules/drain/facts.ts'
import { drainOf, proven, seen } from './drain.ts'
import { holder } from './holder.ts'
import { pod, terminating } from './pod.ts'

/** As YAML can state it: without fields that are `undefined`. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? 'none'))

/** The ghosts among three nodes, of which a pod has the first address. Times by address. */
export function haunting(
  given: { ended?: Record<string, number>; free?: Record<string, number> },
  now: number
) {
  const { ended = {}, free = {} } = given
  const nodes = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
  const known = {
    isTaken: (host: string) => host === '10.0.0.1',
    endedAt: (host: string) => ended[host],
    freeSince: (host: string) => free[host]
  }
  return ghostsIn(holder('web', nodes), known, now, 600_000).map(({ node }) => node)
}

/** When a gateway has ended, by what was heard at its ports. */
export function vanishing(given: {
  gateway?: Parameters<typeof gatewayEndsAt>[0]
  heard: readonly Partial<Heard>[]
}) {
  const silent: Heard = { lastSuccessAt: undefined, lastAttemptAt: undefined, refused: false }
  const at = gatewayEndsAt(
    given.gateway ?? { vanishedAt: 1_000_000 },
    given.heard.map(one => ({ ...silent, ...one }))
  )
  return at === Infinity ? 'never' : at
}

export const WORD: WorkersWord = {
  said: 2,
  asked: 2,
  places: 1,
  sole: [],
  succeeded: [],
  hidden: 0,
  others: [{ places: 1, nodes: ['10.0.0.2:80'], more: 0 }],
  cut: 0,
  ways: { asked: 0, found: [], more: 0 },
  tag: 't1'
}

/** The word of all workers, and what it says of a seal while these nodes serve. `null`: an address without a word. */
export function sealing(given: {
  words: readonly (Partial<WorkersWord> | null)[]
  serving?: readonly string[]
  hold?: Partial<typeof HOLD_ALL>
}) {
  const { words, serving = ['10.0.0.2:80'], hold } = given
  const word = wordOf(
    words.map(differs => {
      if (!differs) return undefined
      const { tag, ...rest } = { ...WORD, ...differs }
      return rest.said < rest.asked ? rest : { ...rest, tag }
    })
  )
  if (!word) return 'none'
  const seal = judge(word, node => serving.includes(node), hold && { ...HOLD_ALL, ...hold })
  const { complete, places, sole, tags } = word
  return plain({ complete, places, sole, tags, seal })
}

/** The places, lists of other choices and unnamed places that no longer delay the seal of a pod of the namespace shop. */
export function lettingGo(
  given: {
    listed: Readonly<
      Record<string, { namespace?: string; key?: string; nodes: readonly string[]; removedAt?: number }>
    >
    /** By name: how many places a word names. */
    places?: Readonly<Record<string, number>>
    others?: readonly (readonly string[])[]
  },
  now: number
) {
  const listedIn = Object.entries(given.listed).map(([id, { nodes, removedAt, ...differs }]) => ({
    holder: holder(id, nodes, differs),
    removedAt
  }))
  const letGo = letGoOf({ namespace: 'shop' }, listedIn, now)
  if (letGo === HOLD_ALL) return 'none'
  const places = Object.entries(given.places ?? {}).flatMap(([name, named]) =>
    letGo.place(name, named) ? [name] : []
  )
  return { places, others: (given.others ?? []).filter(list => letGo.others(list)), cut: letGo.cut }
}

/**
 * The clocks of a holder, after each step. A step is a listing of the holder (`owner`: its revision; `differs`: nodes, each with the time of its
 * change) or the report of gateways: since when each has the revision, why it lacks it, or `null` if it was not read.
 */
export function timing(given: {
  readonly steps: readonly (Partial<Omit<Parameters<typeof seenAtOwner>[1], 'differs'>> & {
    readonly now?: number
    readonly owner?: number
    readonly differs?: Readonly<Record<string, number>>
    readonly gateways?: Readonly<Record<string, number | string | null>>
  })[]
}) {
  const names = ['apisix-0', 'apisix-1']
  let clocks = firstSeen(40, names, 1000)
  return given.steps.map(({ now = 0, owner, differs = {}, gained = false, stale = false, gateways = {} }) => {
    const at = { revision: owner!, differs: new Map(Object.entries(differs)), gained, stale }
    const reports = Object.entries(gateways).map(([name, of]) =>
      typeof of === 'number' ? { name, at: of, why: '' } : { name, at: undefined, why: of ?? '' }
    )
    clocks = owner === undefined ? seenAtGateways(clocks, reports) : seenAtOwner(clocks, at, names, now)
    return [
      ...[...clocks.nodes].map(([node, since]) => `${node} differs since ${since}`),
      ...(clocks.owes === undefined ? [] : [`a write is owed since ${clocks.owes}`]),
      ...[...clocks.waiting].map(([name, { since, why }]) =>
        [`${name} waits since ${since}`, ...(why ? [why] : [])].join(', ')
      )
    ].join('; ')
  })
}

/**
 * Of three drains, one that goes on, one that is proven, and one whose pod is gone: whether their addresses are still theirs, and what becomes of
 * their entries, and of those that outlive a drain. `looks`: when the watch of pods was looked at, and whether it was live.
 */
export function owning(
  given: {
    /** Only the pods of some namespaces are watched. */
    some?: boolean
    looks: readonly (readonly [live: boolean, at: number])[]
    pod?: Partial<PodFact>
    isHeld?: boolean
    behindMs?: number
  },
  now: number
) {
  const ownership = createAddressOwnership(given.some ?? false, () => given.behindMs ?? 0)
  for (const [live, at] of given.looks) ownership.look(live, at)
  const draining = {
    ...drainOf(seen(pod('web-1', terminating(0)))),
    pod: pod('web-1', given.pod ?? terminating(0))
  }
  const acked = { ...draining, phase: 'proven', at: 10, verdict: proven() } as Drain
  const drains = { draining, acked, gone: { ...acked, phase: 'gone', at: 20 } as Drain }
  const each = Object.entries(drains).map(([name, drain]) => {
    const sure = ownership.isSure(drain, now) ? 'its address' : 'perhaps not its address'
    return `${name}: ${sure}, ${ownership.ofDrain(drain, given.isHeld ?? false, now)}`
  })
  return [...each, `others: ${ownership.ofGone()}`]
}
