import type { Millis } from '../../rules/drain/facts.ts'
import type { AgentView, GatewayView, Snapshot } from './snapshot.ts'

/** The agent that was asked, as an item of the list of all agents. */
export function selfView(
  at: Millis,
  { id, name, version, startedAt, dryRun, leader, apisix, missingParts }: Snapshot['agent'],
  gateways: readonly GatewayView[]
): AgentView {
  return {
    id,
    name,
    address: null,
    version,
    startedAt,
    heardAt: at,
    link: 'self',
    problem: '',
    leads: leader.leads,
    mode: apisix.mode ?? null,
    dryRun,
    missingParts,
    proving: gateways.filter(({ available }) => available === 'barrier').length,
    gateways: gateways.length,
    plugins: [...new Set(gateways.flatMap(({ plugin }) => plugin ?? []))].toSorted()
  }
}
