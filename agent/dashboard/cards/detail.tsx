import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { longLivedWords } from '../../rules/drain/drain.ts'
import type { Moments } from '../../report/snapshot/drain-view.ts'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import { commandsFor } from '../model/commands.ts'
import { count, formatMs, wallClock } from '../model/format.ts'
import type { Lane } from '../model/lanes.ts'
import { GRADES, HOLDER_STATES, wordsOf } from '../model/words.ts'
import { Mark, Name, Time } from '../parts/basics.tsx'

const STORY: readonly (readonly [keyof Moments, string])[] = [
  ['decidedAt', 'Kubernetes decided (whole seconds)'],
  ['seenAt', 'the agent saw it'],
  ['hookAt', 'the hook called'],
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
  const { drain, start, lagMs } = lane
  const box = useRef<HTMLElement>(null)
  useEffect(() => box.current?.focus(), [lane.id])
  const story = STORY.flatMap(([moment, label]) => {
    const at = drain.moments[moment]
    return at === null ? [] : [{ label, at }]
  }).sort((a, b) => a.at - b.at)
  const after = (at: number | null) => (at === null ? '' : `+${formatMs(Math.max(0, at - start))}`)
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
        <Mark {...wordsOf(lane)} />{' '}
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
      <Steps
        title={`Moments, from ${wallClock(start)}`}
        rows={story.map(({ label, at }) => ({
          name: label,
          after: `${at < start ? '−' : '+'}${formatMs(Math.abs(at - start))}`,
          what: <Time at={at} now={at} as="exact" />
        }))}
      />
      {drain.afterAck !== null && (
        <p class="small">
          <Mark
            tone={drain.afterAck === 0 ? 'good' : 'bad'}
            label={`${count(drain.afterAck, 'request')} sent to it after the ack`}
          />
        </p>
      )}
      <Steps
        title="Gateways"
        none="None has been asked."
        rows={drain.gateways.map(({ name, grade, at, why }) => ({
          name,
          after: after(at ?? null),
          what: <Mark {...(grade ? GRADES[grade] : { tone: 'busy', label: 'not yet' })} />,
          why
        }))}
      />
      <Steps
        title="Holders"
        none="None lists the pod."
        rows={drain.holders.map(({ key, state, why, at }) => ({
          name: key,
          after: after(at),
          what: <Mark {...HOLDER_STATES[state]} />,
          why
        }))}
      />
      <h4>See for yourself</h4>
      <ul class="commands">
        {commandsFor(drain, snapshot.gateways, snapshot.agent.reach).map(({ shows, line }) => (
          <li key={line}>
            <span class="quiet">{shows}</span>
            <CopyLine line={line} />
          </li>
        ))}
      </ul>
    </aside>
  )
}

interface StepsProps {
  title: string
  /** Shown if there is no row. */
  none?: string
  rows: readonly { name: string; after: string; what: ComponentChildren; why?: string }[]
}

/** Times of one drain: what, how long after its start, and more. */
const Steps = ({ title, none, rows }: StepsProps) => (
  <>
    <h4>{title}</h4>
    {rows.length === 0 && <p class="quiet">{none}</p>}
    <table class="plain">
      <tbody>
        {rows.map(({ name, after, what, why }) => (
          <tr key={name}>
            <th scope="row">
              <Name text={name} />
            </th>
            <td class="number">{after}</td>
            <td>
              {what}
              {why && <div class="quiet small">{why}</div>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </>
)

function CopyLine({ line }: { line: string }) {
  const [copied, set] = useState(false)
  const copy = () => {
    // If the page has no https, the browser offers no clipboard. The user can still select the text.
    void navigator.clipboard?.writeText(line).then(() => set(true))
  }
  return (
    <div class="command">
      <code>{line}</code>
      <button type="button" class="ghost-button" onClick={copy}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}
