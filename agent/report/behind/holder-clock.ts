import type { Millis, NodeKey } from '../../rules/drain/facts.ts'
import type { HolderView } from '../snapshot/holder-view.ts'
import type { Compared } from './differences.ts'

/** How far a holder is behind Kubernetes now, and how long the gateways took to follow its last change. */
export type HolderClock = Pick<HolderView, 'missing' | 'notReady' | 'behind' | 'lags'>

/** The clock of a holder that is not behind, and has no lags. */
export const QUIET: HolderClock = { missing: [], notReady: [], behind: null, lags: [] }

/**
 * Keeps only the results of readings that began after the change: an earlier reading may just be old.
 *
 * @param readAt when the holders were read last
 * @param isSynced whether the agent fills the holder, so that no other owner is to blame
 */
export function holderClock(
  { holder, clocks }: Pick<Compared, 'holder' | 'clocks'>,
  readAt: Millis,
  isSynced: () => boolean
): HolderClock {
  const { waiting, lags } = clocks
  const owner = clocks.owes !== undefined && clocks.owes < readAt ? clocks.owes : null
  if (clocks.nodes.size + waiting.size + lags.length === 0 && owner === null) return QUIET
  const nodes = [...clocks.nodes].flatMap(([node, since]) => (since < readAt ? [{ node, since }] : []))
  const gateways = [...waiting].flatMap(([gateway, { since, why, evidence }]) =>
    why === '' ? [] : [{ gateway, since, why, evidence }]
  )
  if (owner === null && gateways.length === 0) return lags.length === 0 ? QUIET : { ...QUIET, lags }
  const isListed = ({ node }: { readonly node: NodeKey }) => holder.nodes.some(({ key }) => key === node)
  const since = Math.min(owner ?? Infinity, ...gateways.map(one => one.since))
  const cause = owner === null ? 'gateways' : isSynced() ? 'sync' : 'owner'
  return {
    missing: nodes.filter(one => !isListed(one)),
    notReady: nodes.filter(isListed),
    behind: { since, owner, cause, gateways },
    lags
  }
}
