import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import { Mark } from '../parts/mark.tsx'
import { Name } from '../parts/name.tsx'
import { Time } from '../parts/time.tsx'

const SHOWN = 20

/** The newest answers to hooks, of all agents as far as the gateways tell them, and what this agent lacks. */
export function Answers({ snapshot, now }: { snapshot: Snapshot; now: number }) {
  const { acks, agent, gateways } = snapshot
  const isAlone = !gateways.some(({ plugin }) => plugin !== null)
  return (
    <section aria-labelledby="answers">
      <div class="section-head">
        <h2 id="answers">Answers to hooks</h2>
        <span class="quiet spread">
          {count(acks.length, 'answer')} known to {agent.name}
        </span>
      </div>
      {isAlone && <p class="note">No gateway has the barrier: these are the answers of this agent only.</p>}
      {agent.missingParts.map(({ part, why }) => (
        <p key={part} class="note">
          This agent is not ready: <b>{part}</b> {why}
        </p>
      ))}
      <div class="wide" tabIndex={0} role="region" aria-labelledby="answers">
        <table class="plain full cards">
          <thead>
            <tr>
              <th scope="col">Pod</th>
              <th scope="col">Answer</th>
              <th scope="col">Evidence</th>
              <th scope="col">Took</th>
              <th scope="col">By</th>
              <th scope="col">When</th>
            </tr>
          </thead>
          <tbody>
            {acks.slice(0, SHOWN).map(({ at, by, ack }) => (
              <tr key={`${ack.pod.uid} ${at}`}>
                <th scope="row">
                  <Name text={`${ack.pod.namespace}/${ack.pod.name}`} />
                </th>
                <td class="words" data-label="Answer">
                  <Mark tone={ack.status === 200 ? 'good' : 'bad'} label={`${ack.status} ${ack.result}`} />
                  {ack.status !== 200 && <div class="quiet small">{ack.why}</div>}
                </td>
                <td data-label="Evidence">{ack.evidence}</td>
                <td data-label="Took">{formatMs(ack.elapsedMs)}</td>
                <td data-label="By">{by}</td>
                <td class="quiet" data-label="When">
                  <Time at={at} now={now} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
