import { longLivedWords, together } from '../../rules/drain/drain.ts'
import type { DrainView } from '../../report/snapshot/drain-view.ts'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { clock, count, formatAge } from './format.ts'
import { isOpen, lanesOf, standingOf, type Lane } from './lanes.ts'
import { behindFor, differs, holderName, LATE_MS, whyBehind } from './upstreams.ts'
import { availableWords, GRADES, gatewayState } from './words.ts'

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
  cannotVouch,
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
    const ghosts = holders
      .filter(differs)
      .flatMap(holder => holder.ghosts.map(ghost => ({ holder, ...ghost })))
    const late = ghosts.filter(({ since }) => at - since > LATE_MS)
    const [first] = late
    return first && busy(`${count(late.length, 'ghost')} in APISIX.`, `${holderName(first.holder)} lists it.`)
  },
  ({ inventory: { hooks } }) => unsafe('has no hook', hooks.without, hooks.counts.without),
  ({ inventory: { hooks } }) =>
    unsafe('has a container that ends before the answer', hooks.early, hooks.counts.early),
  ({ inventory: { hooks } }) => unsafe('has a hook without a fallback', hooks.bare, hooks.counts.bare)
]

/** Whether the agent may have missed a change: then that it knows of none says nothing. */
export const isBlind = (snapshot: Snapshot): boolean =>
  cannotVouch(snapshot) !== undefined || blind(snapshot) !== undefined

function cannotVouch({ agent: { vouch } }: Snapshot): Trouble | undefined {
  if (vouch.ok) return undefined
  return bad('The agent cannot vouch for an answer.', `${vouch.why}. Hooks run their own fallback.`)
}

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
  const wait = deadlines.length > 0 ? ` up to ${formatAge(Math.max(...deadlines) - at)}` : ''
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

/** An upstream that lists pods, none of which serves. It is reported at once: without successors its requests fail. */
function unserved({ holders }: Snapshot): Trouble | undefined {
  const found = holders
    .filter(differs)
    .filter(
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
      : nobody.length > 0
        ? 'Gateways answer 503 until the owner has listed one that serves.'
        : 'Gateways use the successors that their entries name, or answer 503, until the owner has listed one that serves.'
  }
}

/** A change of the ready endpoints has not reached the Admin API or a gateway for longer than SLOW_MS. */
function behind({ at, holders }: Snapshot): Trouble | undefined {
  const late = holders
    .filter(differs)
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

export const HOUR_MS = 3_600_000

/** The result of the last hour, beside the headline. It says nothing about the present. */
export interface LastHour {
  readonly level: 'well' | 'busy' | 'bad'
  readonly text: string
  /** The drain to look at, as the id of its lane; empty if none needs a look. */
  readonly drain: string
}

/** The pods that ended within the hour: how many were proved, and the last that was not. An agent that is younger says so. */
export function lastHourOf({ at, agent, drains, past }: Snapshot): LastHour {
  const over = lanesOf(drains, past).filter(
    ({ standing, drain }) => (standing === 'proved' || standing === 'unproved') && at - endOf(drain) < HOUR_MS
  )
  const isYoung = at - agent.startedAt < HOUR_MS
  const when = isYoung
    ? `Since this agent started ${formatAge(at - agent.startedAt)} ago`
    : 'In the last hour'
  const late = newest(over.filter(({ drain }) => (drain.afterAck ?? 0) > 0))
  if (late) {
    const requests = count(late.drain.afterAck ?? 0, 'request')
    const text = `${when}, ${nameOf(late)} got ${requests} after its answer: look at the error.log of its gateways.`
    return { level: 'bad', text, drain: late.id }
  }
  const failed = over.filter(({ standing }) => standing === 'unproved')
  const last = newest(failed)
  if (last) {
    const text = `${when}, ${failed.length} of ${count(over.length, 'pod')} not proved in time, the last ${nameOf(last)} at ${clock(endOf(last.drain))}: ${reasonOf(last)}`
    return { level: 'bad', text, drain: last.id }
  }
  if (over.length === 0) return { level: 'well', text: `${when}, no pod ended.`, drain: '' }
  const weak = over.flatMap(({ drain: { verdict } }) =>
    verdict?.grade && verdict.grade !== 'barrier' ? [GRADES[verdict.grade].label] : []
  )
  if (weak.length === 0)
    return { level: 'well', text: `${when}, ${count(over.length, 'pod')} proved.`, drain: '' }
  const text = `${when}, ${weak.length} of ${count(over.length, 'pod')} ${weak[0]}.`
  return { level: 'busy', text, drain: '' }
}

const endOf = ({ moments, deadline }: Lane['drain']): number => moments.ackAt ?? moments.goneAt ?? deadline
const newest = (lanes: readonly Lane[]): Lane | undefined =>
  lanes.toSorted((a, b) => endOf(b.drain) - endOf(a.drain))[0]
const nameOf = ({ drain }: Lane): string => `${drain.namespace}/${drain.pod}`

/** The reasons without the words around them. */
const reasonOf = ({ drain }: Lane): string =>
  drain.why.replace(/^(?:waiting|nothing can be proved) \((.*)\)$/s, '$1')

/** The title of the browser's tab: it shows the state while another tab is open. */
export function titleOf(snapshot: Snapshot | undefined, level: Sentence['level']): string {
  const waiting = snapshot?.drains.filter(isOpen).length ?? 0
  const marks = [...(level === 'bad' ? ['!'] : []), ...(waiting > 0 ? [`${waiting} waiting`] : [])]
  return `${marks.length > 0 ? `(${marks.join(' ')}) ` : ''}apisix-drain`
}
