import { longLivedWords, together } from '../../rules/drain/long-lived.ts'
import type { HolderView } from '../../report/snapshot/holder-view.ts'
import type { DrainView } from '../../report/snapshot/drain-view.ts'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { behindFor, formatAge, holderName, LATE_MS, whyBehind } from './why-behind.ts'
import { count, formatMs } from './format.ts'
import { standingOf } from './lanes.ts'
import { availableWords, gatewayState } from './words.ts'

/** An owner or a gateway that needs longer than this is mentioned, in ms. A usual rollout takes less. */
const SLOW_MS = 5000

/** The headline: whether all is well now, or the worst problem and the next step. It knows nothing of the past. */
export interface Sentence {
  readonly level: 'well' | 'busy' | 'bad'
  readonly head: string
  /** Why, and the other problems; empty if all is well. */
  readonly rest: string
  /** The figures of the moment. */
  readonly facts: string
}

type Trouble = Omit<Sentence, 'facts' | 'level'> & { readonly level: 'busy' | 'bad' }

/** The headline for a snapshot: its worst problem. The checks of a level are in the order of severity. */
export function sentenceOf(snapshot: Snapshot): Sentence {
  const found = CHECKS.flatMap(check => check(snapshot) ?? [])
  const [worst, ...others] = found.toSorted((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad'))
  const facts = factsOf(snapshot)
  if (!worst) return { level: 'well', head: 'All is well.', rest: '', facts }
  const also = others.length > 0 ? [`Also: ${others.map(({ head }) => head).join(' ')}`] : []
  return { ...worst, rest: [...(worst.rest ? [worst.rest] : []), ...also].join(' '), facts }
}

const CHECKS: readonly ((snapshot: Snapshot) => Trouble | undefined)[] = [
  ({ agent: { vouch } }) =>
    vouch.ok
      ? undefined
      : bad('The agent cannot vouch for an answer.', `${vouch.why}. Hooks run their own fallback.`),
  deadGateways,
  weakGateways,
  blind,
  unserved,
  behind,
  ({ gateways }) => {
    const starting = gateways.filter(({ ready, terminating }) => !ready && !terminating).length
    if (starting === 0) return undefined
    return busy(`${count(starting, 'gateway')} not Ready: its barrier still has to confirm each removal.`)
  },
  ({ at, drains }) => {
    const waiting = drains.filter(({ phase }) => phase === 'draining')
    if (waiting.length === 0) return undefined
    const longest = at - Math.min(...waiting.map(({ moments }) => moments.seenAt))
    const since = longest > SLOW_MS ? `, the longest for ${formatAge(longest)}` : ''
    return busy(`${count(waiting.length, 'pod')} on the way out${since}.`)
  },
  ({ at, holders }) => {
    const ghosts = differingOf(holders).flatMap(holder => holder.ghosts.map(ghost => ({ holder, ...ghost })))
    const late = ghosts.filter(({ since }) => at - since > LATE_MS)
    const [first] = late
    return first && busy(`${count(late.length, 'ghost')} in APISIX.`, `${holderName(first.holder)} lists it.`)
  },
  ({ hidden: [first, ...others] }) =>
    first && busy(`${count(1 + others.length, 'place')} in APISIX can hide pods.`, first.why),
  ({ inventory: { hooks } }) => unsafe('has no hook', hooks.without, hooks.counts.without),
  ({ inventory: { hooks } }) =>
    unsafe('has a container that ends before the answer', hooks.early, hooks.counts.early),
  ({ inventory: { hooks } }) => unsafe('has a hook without a fallback', hooks.bare, hooks.counts.bare)
]

const bad = (head: string, rest = ''): Trouble => ({ level: 'bad', head, rest })
const busy = (head: string, rest = ''): Trouble => ({ level: 'busy', head, rest })

const serving = ({ gateways }: Snapshot) => gateways.filter(({ ready, terminating }) => ready && !terminating)

function deadGateways(snapshot: Snapshot): Trouble | undefined {
  const { at, drains } = snapshot
  const all = serving(snapshot)
  const dead = all.filter(gateway => gatewayState(gateway).label === 'unreachable')
  const [first] = dead
  if (!first) return undefined
  const deadlines = drains.filter(({ phase }) => phase === 'draining').map(({ deadline }) => deadline)
  const wait = deadlines.length > 0 ? ` up to ${formatMs(Math.max(0, Math.max(...deadlines) - at))}` : ''
  const asked = first.barrier ?? first.control
  const silent =
    asked?.lastSuccessAt == null
      ? 'has never answered'
      : `last answered ${formatAge(at - asked.lastSuccessAt)} ago`
  return bad(
    `${dead.length} of ${count(all.length, 'gateway')} unreachable: rollouts wait${wait}.`,
    `${first.name} ${silent}: ${asked?.problem}.`
  )
}

/** Gateways that answer and cannot prove. If no barrier is configured, an answer is enough. */
function weakGateways(snapshot: Snapshot): Trouble | undefined {
  if (snapshot.agent.reach.barrier === null) return undefined
  const all = serving(snapshot)
  const weak = all.filter(one => gatewayState(one).label === 'ready' && one.available !== 'barrier')
  const [first] = weak
  if (!first) return undefined
  return bad(
    `${weak.length} of ${count(all.length, 'gateway')} cannot prove.`,
    `${first.name} ${availableWords(first).label}: ${first.why}.`
  )
}

function blind({ watches, inventory }: Snapshot): Trouble | undefined {
  const stale = watches.filter(({ state }) => state !== 'live')
  if (stale.length > 0)
    return bad(
      `The watch of ${stale.map(({ kind }) => kind).join(', ')} is not live.`,
      stale[0]?.problem ?? ''
    )
  return inventory.problem ? bad('The holders cannot be read.', inventory.problem) : undefined
}

/** An upstream that lists pods, none of which serves. It is told at once: without successors its requests fail. */
function unserved({ holders }: Snapshot): Trouble | undefined {
  const found = differingOf(holders).filter(
    ({ onSuccessors, nodes, ghosts }) =>
      onSuccessors !== null || (nodes.length > 0 && ghosts.length === nodes.length)
  )
  const nobody = found.filter(one => !one.onSuccessors?.nodes.length && one.missing.length > 0)
  const [first] = nobody.length > 0 ? nobody : found
  if (!first) return undefined
  const head =
    found.length === 1
      ? `${holderName(first)} lists no pod that serves.`
      : `${found.length} upstreams list no pod that serves, such as ${holderName(first)}.`
  const successors = first.onSuccessors?.nodes.join(', ')
  return {
    level: nobody.length > 0 ? 'bad' : 'busy',
    head,
    rest: successors
      ? `Gateways with the plugin use its successors ${successors} until the owner has listed one.`
      : 'Gateways answer 503 until the owner has listed one that serves.'
  }
}

/** A change of the ready endpoints has not reached the Admin API or a gateway: the owner or that gateway has stopped. */
function behind({ at, holders }: Snapshot): Trouble | undefined {
  const late = differingOf(holders)
    .filter(holder => (behindFor(holder, at) ?? 0) > SLOW_MS)
    .toSorted((a, b) => (a.behind?.since ?? 0) - (b.behind?.since ?? 0))
  const [worst] = late
  if (!worst) return undefined
  const ms = behindFor(worst, at) ?? 0
  const others = late.length > 1 ? ` ${count(late.length - 1, 'other')} too.` : ''
  return {
    level: ms > LATE_MS ? 'bad' : 'busy',
    head: `${holderName(worst)} has been behind Kubernetes for ${formatAge(ms)}.`,
    rest: `${whyBehind(worst)}.${others}`
  }
}

function unsafe(what: string, list: readonly { readonly name: string }[], all: number): Trouble | undefined {
  const [first] = list
  if (!first) return undefined
  return busy(
    all === 1 ? `${first.name} ${what}.` : `${count(all, 'workload')}, such as ${first.name}, ${what}.`
  )
}

function factsOf({ agent, drains, gateways }: Snapshot): string {
  const hooks = drains.reduce((sum, drain) => sum + drain.hooks, 0)
  const left = longLivedWords(together(drains.flatMap(({ longLived }) => longLived ?? [])))
  const kept = drains.filter(drain => isOpenAndKept(drain)).length
  return [
    count(gateways.length, 'gateway'),
    hooks === 0 ? 'no hook waits' : `${count(hooks, 'hook')} held`,
    ...(left === '' ? [] : [left]),
    ...(kept > 0 ? [`${count(kept, 'last endpoint')} held until another pod serves`] : []),
    ...(agent.dryRun ? ['dry run: nothing is written'] : [])
  ].join(' · ')
}

const isOpenAndKept = (drain: DrainView) => drain.phase === 'draining' && standingOf(drain) === 'kept'

const differing = new WeakMap<readonly HolderView[], readonly HolderView[]>()

/** The few holders that differ, out of thousands. Each list of holders is searched once. */
function differingOf(holders: readonly HolderView[]): readonly HolderView[] {
  const known = differing.get(holders)
  if (known) return known
  const found = holders.filter(
    ({ ghosts, onSuccessors, behind }) => ghosts.length > 0 || onSuccessors !== null || behind !== null
  )
  differing.set(holders, found)
  return found
}
