import { longLivedWords } from '../../rules/drain/long-lived.ts'
import { useEffect, useRef } from 'preact/hooks'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import type { Moments } from '../../report/snapshot/drain-view.ts'
import { commandsFor } from '../model/commands.ts'
import { count, formatMs, wallClock } from '../model/format.ts'
import type { Lane } from '../model/lanes.ts'
import { Commands } from '../cards/commands-card.tsx'
import { GRADES, HOLDER_STATES, STANDING } from '../model/words.ts'
import { Mark } from './mark.tsx'
import { Name } from './name.tsx'
import { Time } from './time.tsx'

const STORY: readonly (readonly [keyof Moments, string])[] = [
  ['decidedAt', 'Kubernetes decided (whole seconds)'],
  ['seenAt', 'the agent saw it'],
  ['hookAt', 'the hook called'],
  ['sliceAt', 'EndpointSlice says terminating'],
  ['acceptedAt', 'Admin API accepted the removal'],
  ['sealedAt', 'every gateway had sealed it: no new request'],
  ['confirmedAt', 'every gateway had confirmed'],
  ['idleAt', 'nothing in flight any more'],
  ['ackAt', 'the hook was answered'],
  ['goneAt', 'the pod is gone']
]

interface DetailProps {
  lane: Lane
  snapshot: Snapshot
  onClose: () => void
}

/** All details of one drain: times, gateways, holders, and commands to check the drain by hand. */
export function Detail({ lane, snapshot, onClose }: DetailProps) {
  const { drain, standing, start, lagMs } = lane
  const box = useRef<HTMLElement>(null)
  useEffect(() => box.current?.focus(), [lane.id])
  const story = STORY.flatMap(([moment, label]) => {
    const at = drain.moments[moment]
    return at === null ? [] : [{ label, at }]
  }).sort((a, b) => a.at - b.at)
  const grade = drain.verdict?.grade
  return (
    <aside
      class="detail"
      aria-label={`Drain of ${drain.pod}`}
      tabIndex={-1}
      ref={box}
      onKeyDown={event => event.key === 'Escape' && onClose()}
    >
      <div class="detail-head">
        <h3>{drain.pod}</h3>
        <button type="button" class="ghost-button" onClick={onClose}>
          Close
        </button>
      </div>
      <p>
        <Mark {...(standing === 'proved' && grade ? GRADES[grade] : STANDING[standing])} />{' '}
        <span class="quiet">
          {[
            drain.namespace,
            drain.owner ?? 'no owner',
            drain.ips.join(' ') || 'no address',
            ...(lagMs === null ? [] : [`sync lag ${formatMs(lagMs)}`])
          ].join(' · ')}
        </span>
      </p>
      {drain.why && <p class="why">{drain.why}</p>}
      {drain.longLived && (
        <p class="small">
          left to the pod: {longLivedWords(drain.longLived)}
          {drain.longLived.oldestMs > 0 && `, the oldest for ${formatMs(drain.longLived.oldestMs)}`}
        </p>
      )}
      <h4>Moments, from {wallClock(start)}</h4>
      <table class="plain">
        <tbody>
          {story.map(({ label, at }) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td class="number">{`${at < start ? '−' : '+'}${formatMs(Math.abs(at - start))}`}</td>
              <td class="number quiet">
                <Time at={at} now={at} as="exact" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {drain.afterAck !== null && (
        <p class="small">
          <Mark
            tone={drain.afterAck === 0 ? 'good' : 'bad'}
            label={`${count(drain.afterAck, 'request')} sent to it after the ack`}
          />
        </p>
      )}
      <h4>Gateways</h4>
      {drain.gateways.length === 0 ? (
        <p class="quiet">None has been asked.</p>
      ) : (
        <table class="plain">
          <tbody>
            {drain.gateways.map(({ name, grade, at, why }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="number">{at ? `+${formatMs(Math.max(0, at - start))}` : ''}</td>
                <td>
                  <Mark {...(grade ? GRADES[grade] : { tone: 'busy', label: 'not yet' })} />
                  {why && <div class="quiet small">{why}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <h4>Holders</h4>
      {drain.holders.length === 0 ? (
        <p class="quiet">None lists the pod.</p>
      ) : (
        <table class="plain">
          <tbody>
            {drain.holders.map(({ key, state, why, at }) => (
              <tr key={key}>
                <th scope="row">
                  <Name text={key} />
                </th>
                <td class="number">{at === null ? '' : `+${formatMs(Math.max(0, at - start))}`}</td>
                <td>
                  <Mark {...HOLDER_STATES[state]} />
                  {why && <div class="quiet small">{why}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <h4>See for yourself</h4>
      <Commands commands={commandsFor(drain, snapshot.gateways, snapshot.agent.reach)} />
    </aside>
  )
}
