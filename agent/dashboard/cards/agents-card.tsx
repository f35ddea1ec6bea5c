import type { AgentView } from '../../report/snapshot/snapshot.ts'
import { count } from '../model/format.ts'
import type { Tone } from '../model/words.ts'
import { Mark } from '../parts/mark.tsx'
import { Name } from '../parts/name.tsx'
import { Time } from '../parts/time.tsx'

const LINKS: Record<AgentView['link'], { readonly tone: Tone; readonly label: string }> = {
  self: { tone: 'good', label: 'you are here' },
  live: { tone: 'good', label: 'live' },
  lost: { tone: 'bad', label: 'does not answer' },
  other: { tone: 'bad', label: 'another version' }
}

/** The agents whose drains and answers the page shows: the link to each, the leader, and the parts that are not ready. */
export function Agents({ agents, now }: { agents: readonly AgentView[]; now: number }) {
  return (
    <section aria-labelledby="agents">
      <div class="section-head">
        <h2 id="agents">Agents</h2>
        <span class="quiet spread">{count(agents.length, 'agent')}</span>
      </div>
      <div class="wide" tabIndex={0} role="region" aria-labelledby="agents">
        <table class="plain full cards">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              <th scope="col">Link</th>
              <th scope="col">Leads</th>
              <th scope="col">Version</th>
              <th scope="col">Gateways prove</th>
              <th scope="col">Missing</th>
              <th scope="col">Started</th>
            </tr>
          </thead>
          <tbody>
            {agents.map(agent => (
              <Row key={agent.address ?? ''} agent={agent} now={now} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Row({ agent, now }: { agent: AgentView; now: number }) {
  const { address, name, link, problem, heardAt, leads, version, mode, dryRun, missingParts, startedAt } =
    agent
  const isOld = link === 'lost' || link === 'other'
  return (
    <tr>
      <th scope="row">
        <Name text={name} />
        {address !== null && address !== name && <div class="quiet small">{address}</div>}
      </th>
      <td class="words" data-label="Link">
        <Mark {...LINKS[link]} />
        {isOld && heardAt !== null && (
          <div class="quiet small">
            What it knew <Time at={heardAt} now={now} />
          </div>
        )}
        {problem !== '' && <div class="small">{problem}</div>}
      </td>
      <td data-label="Leads">{leads ? 'leads' : '–'}</td>
      <td data-label="Version">
        {version ?? '–'}
        <div class="quiet small">
          {[...(mode === null ? [] : [mode]), ...(dryRun ? ['dry run'] : [])].join(' · ')}
        </div>
      </td>
      <td data-label="Gateways prove">
        {version === null ? '–' : `${agent.proving} of ${agent.gateways}`}
        {agent.plugins.length > 0 && <div class="quiet small">plugin {agent.plugins.join(', ')}</div>}
      </td>
      <td class="words" data-label="Missing">
        {missingParts.length === 0
          ? '–'
          : missingParts.map(({ part, why }) => (
              <div key={part} class="small">
                <b>{part}</b> {why}
              </div>
            ))}
      </td>
      <td class="quiet" data-label="Started">
        {startedAt === null ? '–' : <Time at={startedAt} now={now} />}
      </td>
    </tr>
  )
}
