import type { GatewayView, Snapshot } from '../../report/snapshot/snapshot.ts'
import type { DrainView } from '../../report/snapshot/drain-view.ts'
import { behindFor, formatAge, LATE_MS, whyBehind } from './why-behind.ts'
import { clock, count, formatMs } from './format.ts'
import { standingOf } from './lanes.ts'
import { AVAILABLE } from './words.ts'

/** How long an answer without a proof stays on top, in ms. */
const REMEMBERED_MS = 3_600_000
/** A gateway that has not answered for longer than this proves nothing, in ms. It is asked every second or two. */
const SILENT_MS = 4000

/** The headline: whether all is well, or the worst problem and the next step. */
export interface Sentence {
  readonly level: 'well' | 'busy' | 'bad'
  readonly head: string
  readonly rest: string
}

/** The headline for a snapshot: its worst problem. The checks are in the order of severity. */
export function sentenceOf(snapshot: Snapshot): Sentence {
  return (
    noVouch(snapshot) ??
    afterAck(snapshot) ??
    weakGateways(snapshot) ??
    unproved(snapshot) ??
    blind(snapshot) ??
    behind(snapshot) ??
    calm(snapshot)
  )
}

const bad = (head: string, rest: string): Sentence => ({ level: 'bad', head, rest })

function noVouch({ agent: { vouch } }: Snapshot): Sentence | undefined {
  if (vouch.ok) return undefined
  return bad('The agent cannot vouch for an answer.', `${vouch.why}. Hooks run their own fallback.`)
}

function afterAck({ drains, past }: Snapshot): Sentence | undefined {
  const late = [...drains, ...past.slice(0, 50)].find(({ afterAck }) => (afterAck ?? 0) > 0)
  if (!late) return undefined
  return bad(
    'Requests were sent to a pod after its ack.',
    `${nameOf(late)}: ${count(late.afterAck ?? 0, 'request')}. The plugin failed in a gateway: look at its error.log.`
  )
}

/** Gateways that cannot prove. If no barrier is configured, an answer is enough. */
function weakGateways({ at, gateways, agent }: Snapshot): Sentence | undefined {
  const isSilent = (gateway: GatewayView) => silentFor(gateway, at) > SILENT_MS
  const proves = (gateway: GatewayView) =>
    !isSilent(gateway) && (agent.reach.barrier === null || gateway.available === 'barrier')
  const serving = gateways.filter(({ ready, terminating }) => ready && !terminating)
  const weak = serving.filter(gateway => !proves(gateway))
  const [first] = weak
  if (!first) return undefined
  const why = isSilent(first)
    ? `has not answered for ${formatMs(silentFor(first, at))}`
    : `${AVAILABLE[first.available].label}: ${first.why}`
  const others = weak.length > 1 ? ` ${count(weak.length - 1, 'other')} cannot prove either.` : ''
  return bad(
    `${serving.length - weak.length} of ${count(serving.length, 'gateway')} prove.`,
    `${first.name} ${why}. Removals there are not proved.${others} See Gateways below.`
  )
}

/** For how long a gateway has not answered, in ms: 0 if its last call succeeded. */
function silentFor({ barrier, control }: GatewayView, at: number): number {
  const asked = barrier ?? control
  if (!asked || asked.problem === '') return 0
  return Math.max(0, at - (asked.lastSuccessAt ?? asked.lastAttemptAt ?? at))
}

/** This headline stays for an hour (REMEMBERED_MS). If it changed sooner, operators would not see the events of the night. */
function unproved({ at, drains, unproved: past }: Snapshot): Sentence | undefined {
  const found = [...drains, ...past].filter(
    drain => standingOf(drain) === 'unproved' && at - endedAt(drain) < REMEMBERED_MS
  )
  const [last] = found.toSorted((a, b) => endedAt(b) - endedAt(a))
  if (!last) return undefined
  return bad(
    `In the last hour, the removal of ${count(found.length, 'pod')} was not proved in time.`,
    `${nameOf(last)} at ${clock(endedAt(last))}: ${reasonOf(last)}`
  )
}

/** The reasons without "waiting (…)": the verdict of an unproved drain keeps this form to the end. */
const reasonOf = ({ why }: DrainView): string => why.replace(/^waiting \((.*)\)$/s, '$1')

const endedAt = ({ moments, deadline }: DrainView): number => moments.ackAt ?? moments.goneAt ?? deadline
const nameOf = ({ namespace, pod }: DrainView): string => `${namespace}/${pod}`

function blind({ watches, inventory }: Snapshot): Sentence | undefined {
  const stale = watches.filter(({ state }) => state !== 'live')
  if (stale.length > 0)
    return bad(
      `The watch of ${stale.map(({ kind }) => kind).join(', ')} is not live.`,
      stale[0]?.problem ?? ''
    )
  return inventory.problem ? bad('The holders cannot be read.', inventory.problem) : undefined
}

/** A change of the ready endpoints has not reached the Admin API or a gateway for LATE_MS: the owner or that gateway has stopped. */
function behind({ at, holders }: Snapshot): Sentence | undefined {
  const late = differingOf(holders).filter(holder => (behindFor(holder, at) ?? 0) > LATE_MS)
  const [worst] = late.toSorted((a, b) => (a.behind?.since ?? 0) - (b.behind?.since ?? 0))
  if (!worst) return undefined
  const others = late.length > 1 ? ` ${count(late.length - 1, 'other')} too.` : ''
  return bad(
    `${worst.key} has been behind Kubernetes for ${formatAge(behindFor(worst, at) ?? 0)}.`,
    `${whyBehind(worst)}.${others} See Gateways and upstreams below.`
  )
}

/** The headline if no answer is at risk. There may still be work for an operator, such as ghosts. */
function calm(snapshot: Snapshot): Sentence {
  const { agent, at, drains, gateways, hidden, lags } = snapshot
  const waiting = drains.filter(({ phase }) => phase === 'draining')
  const kept = waiting.filter(drain => standingOf(drain) === 'kept').length
  const hooks = drains.reduce((sum, drain) => sum + drain.hooks, 0)
  const differing = differingOf(snapshot.holders)
  const isLate = (since: number) => at - since > LATE_MS
  const found = {
    starting: gateways.filter(({ ready, terminating }) => !ready && !terminating).length,
    succeeded: differing.filter(({ onSuccessors }) => onSuccessors && isLate(onSuccessors.since)).length,
    ghosts: differing.flatMap(({ ghosts }) => ghosts).filter(({ since }) => isLate(since)).length,
    hidden: hidden.length
  }
  const rest = [
    count(gateways.length, 'gateway'),
    hooks === 0 ? 'no hook waits' : `${count(hooks, 'hook')} held`,
    ...(lags[0] ? [`last drain ${formatMs(lags[0].ms)}`] : []),
    ...(kept > 0 ? [`${count(kept, 'last endpoint')} held until another pod serves`] : []),
    ...(found.starting > 0 ? [`${found.starting} of them not Ready`] : []),
    ...(found.succeeded > 0 ? [`${count(found.succeeded, 'upstream')} on successors`] : []),
    ...(found.ghosts > 0 ? [`${count(found.ghosts, 'ghost')} in APISIX`] : []),
    ...(found.hidden > 0 ? [count(found.hidden, 'place that hides pods', 'places that hide pods')] : []),
    ...(agent.dryRun ? ['dry run: nothing is written'] : [])
  ].join(' · ')
  if (waiting.length > 0)
    return { level: 'busy', head: `${count(waiting.length, 'pod')} on the way out.`, rest }
  const isWell = Object.values(found).every(number => number === 0)
  return { level: isWell ? 'well' : 'busy', head: headOf(found), rest }
}

const differing = new WeakMap<Snapshot['holders'], Snapshot['holders']>()

/** The few holders that differ, out of thousands. Each list of holders is searched once. */
function differingOf(holders: Snapshot['holders']): Snapshot['holders'] {
  const known = differing.get(holders)
  if (known) return known
  const found = holders.filter(
    ({ ghosts, onSuccessors, behind }) => ghosts.length > 0 || onSuccessors !== null || behind !== null
  )
  differing.set(holders, found)
  return found
}

function headOf({
  starting,
  succeeded,
  ghosts,
  hidden
}: Readonly<Record<'starting' | 'succeeded' | 'ghosts' | 'hidden', number>>): string {
  if (starting > 0)
    return `${count(starting, 'gateway')} not Ready: no removal is proved until it is, or has ended.`
  if (succeeded > 0)
    return `${count(succeeded, 'upstream')} without a node that serves: the owner has not listed one.`
  if (ghosts > 0) return 'Ghosts are left.'
  return hidden > 0 ? 'Pods are reached through places that hide them.' : 'All is well.'
}
