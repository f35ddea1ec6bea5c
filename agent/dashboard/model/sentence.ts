import type { Snapshot } from '../../serve/snapshot.ts'
import { count, formatMs } from './format.ts'

/** The one sentence on top: whether all is well, and if not, what to look at. */
export interface Sentence {
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
  const ghosts = holders.reduce((sum, { ghosts }) => sum + ghosts.length, 0)

  if (!agent.vouch.ok) {
    return bad('The agent cannot vouch for an answer.', `${agent.vouch.why}. Hooks run their own fallback.`)
  }
  if (unproved.length > 0) {
    return bad(
      `${count(unproved.length, 'pod')} could not be proved out in time.`,
      `${unproved[0]?.pod ?? ''}: ${unproved[0]?.why ?? ''}`
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
    ...(ghosts > 0 ? [`${count(ghosts, 'ghost')} in APISIX`] : []),
    ...(agent.dryRun ? ['dry run: nothing is written'] : [])
  ].join(' · ')
  return waiting.length > 0
    ? { level: 'busy', head: `${count(waiting.length, 'pod')} on the way out.`, rest: facts }
    : {
        level: ghosts > 0 ? 'busy' : 'well',
        head: ghosts > 0 ? 'Ghosts are left.' : 'All is well.',
        rest: facts
      }
}

const bad = (head: string, rest: string): Sentence => ({ level: 'bad', head, rest })

function lastDrain({ lags: [last] }: Snapshot): string[] {
  return last ? [`last drain ${formatMs(last.ms)}`] : []
}
