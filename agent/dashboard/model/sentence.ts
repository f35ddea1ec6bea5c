import type { Snapshot } from '../../page/snapshot.ts'
import { count, formatMs } from './format.ts'

/** A younger difference is probably under repair, in ms. */
const LATE_MS = 30_000

/** The one sentence on top: whether all is well, and if not, what to look at. */
interface Sentence {
  readonly level: 'well' | 'busy' | 'bad'
  readonly head: string
  readonly rest: string
}

export function sentenceOf(snapshot: Snapshot): Sentence {
  const { agent, drains, gateways, holders, inventory } = snapshot
  const waiting = drains.filter(({ phase }) => phase === 'draining')
  const unproved = drains.filter(
    ({ phase, verdict }) => phase === 'expired' || (phase === 'gone' && verdict?.kind === 'waiting')
  )
  const hooks = drains.reduce((sum, drain) => sum + drain.hooks, 0)
  const stale = snapshot.watches.filter(({ state }) => state !== 'live')
  const differing = differingOf(holders)
  const ghosts = differing.reduce((sum, { ghosts }) => sum + ghosts.length, 0)
  const isLate = (since: number) => snapshot.at - since > LATE_MS
  const missing = differing.flatMap(holder => holder.missing).filter(({ since }) => isLate(since)).length
  const apart = differing.flatMap(({ atGateways }) => atGateways).filter(({ since }) => isLate(since))
  const hidden = snapshot.hidden.length
  const succeeded = differing.filter(({ onSuccessors }) => onSuccessors && isLate(onSuccessors.since)).length
  const behind = new Set(apart.map(({ gateway }) => gateway)).size

  if (!agent.vouch.ok) {
    return bad('The agent cannot vouch for an answer.', `${agent.vouch.why}. Hooks run their own fallback.`)
  }
  if (unproved.length > 0) {
    return bad(
      `${count(unproved.length, 'pod')} could not be proved out in time.`,
      `${unproved[0]?.pod ?? ''}: ${unproved[0]?.why ?? ''}`
    )
  }
  const late = [...drains, ...snapshot.past.slice(0, 50)].find(({ afterAck }) => (afterAck ?? 0) > 0)
  if (late) {
    return bad(
      'Requests were sent to a pod after its ack.',
      `${late.namespace}/${late.pod}: ${count(late.afterAck ?? 0, 'request')}. The plugin failed in a gateway: look at its error.log.`
    )
  }
  if (stale.length > 0) {
    return bad(
      `The watch of ${stale.map(({ kind }) => kind).join(', ')} is not live.`,
      stale[0]?.problem ?? ''
    )
  }
  if (inventory.problem) return bad('The holders cannot be read.', inventory.problem)
  const facts = [
    count(gateways.length, 'gateway'),
    hooks === 0 ? 'no hook waits' : `${count(hooks, 'hook')} held`,
    ...lastDrain(snapshot),
    ...(succeeded > 0 ? [`${count(succeeded, 'upstream')} on successors`] : []),
    ...(ghosts > 0 ? [`${count(ghosts, 'ghost')} in APISIX`] : []),
    ...(missing > 0 ? [`${count(missing, 'node')} missing in APISIX`] : []),
    ...(behind > 0 ? [`${count(behind, 'gateway')} not as the Admin API`] : []),
    ...(hidden > 0 ? [count(hidden, 'place that hides pods', 'places that hide pods')] : []),
    ...(agent.dryRun ? ['dry run: nothing is written'] : [])
  ].join(' · ')
  return waiting.length > 0
    ? { level: 'busy', head: `${count(waiting.length, 'pod')} on the way out.`, rest: facts }
    : {
        level: succeeded + ghosts + missing + behind + hidden > 0 ? 'busy' : 'well',
        head: headOf({ succeeded, ghosts, missing, behind, hidden }),
        rest: facts
      }
}

const differing = new WeakMap<Snapshot['holders'], Snapshot['holders']>()

/** The few of thousands that differ; searched once in each list of holders. */
function differingOf(holders: Snapshot['holders']): Snapshot['holders'] {
  const known = differing.get(holders)
  if (known) return known
  const found = holders.filter(
    ({ ghosts, missing, atGateways, onSuccessors }) =>
      ghosts.length + missing.length + atGateways.length > 0 || onSuccessors !== null
  )
  differing.set(holders, found)
  return found
}

function headOf({
  succeeded,
  ghosts,
  missing,
  behind,
  hidden
}: Readonly<Record<'succeeded' | 'ghosts' | 'missing' | 'behind' | 'hidden', number>>): string {
  if (succeeded > 0) return `${count(succeeded, 'upstream')} without a node that serves: the owner is behind.`
  if (ghosts > 0) return 'Ghosts are left.'
  if (missing > 0) return 'APISIX does not list every ready pod.'
  if (behind > 0) return `${count(behind, 'gateway')} behind the Admin API.`
  return hidden > 0 ? 'Pods are reached through places that hide them.' : 'All is well.'
}

const bad = (head: string, rest: string): Sentence => ({ level: 'bad', head, rest })

function lastDrain({ lags: [last] }: Snapshot): string[] {
  return last ? [`last drain ${formatMs(last.ms)}`] : []
}
