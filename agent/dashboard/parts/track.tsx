import { formatMs } from '../model/format.ts'
import { isOpen, type Lane } from '../model/lanes.ts'

interface TrackProps {
  lane: Lane
  scaleMs: number
  now: number
}

/** One drain on the time scale: its removal, the hook that is held meanwhile, and the times of the confirmations. */
export function Track({ lane, scaleMs, now }: TrackProps) {
  const { drain, start, standing } = lane
  const { moments } = drain
  const place = (at: number) => Math.min(100, Math.max(0, ((at - start) / scaleMs) * 100))
  const span = (from: number, to: number) => ({
    left: `${place(from)}%`,
    width: `${Math.max(0, place(to) - place(from))}%`
  })
  const end = isOpen(drain) ? now : (moments.confirmedAt ?? moments.ackAt ?? moments.goneAt ?? drain.deadline)
  const held = moments.hookAt === null ? undefined : (moments.ackAt ?? (lane.live ? now : moments.goneAt))
  const isWeak = drain.verdict?.kind === 'proven' && drain.verdict.grade !== 'barrier'
  const longer = (moments.ackAt ?? end) - start > scaleMs
  const marks = [
    ...drain.gateways.flatMap(({ at }) => (at ? [{ at, kind: 'gateway' }] : [])),
    ...(moments.acceptedAt === null ? [] : [{ at: moments.acceptedAt, kind: 'accepted' }]),
    ...(moments.ackAt === null ? [] : [{ at: moments.ackAt, kind: 'ack' }]),
    ...(isOpen(drain) ? [{ at: drain.deadline, kind: 'deadline' }] : [])
  ].filter(({ at }) => at - start <= scaleMs)
  return (
    <div class="track" aria-hidden="true">
      <span class={`bar ${isWeak ? 'weak' : standing}`} style={span(moments.seenAt, end)} />
      {held !== undefined && held !== null && moments.hookAt !== null && (
        <span class="held" style={span(moments.hookAt, held)} />
      )}
      {moments.goneAt !== null && moments.goneAt > end && (
        <span class="after" style={span(end, moments.goneAt)} />
      )}
      {marks.map(({ at, kind }, i) => (
        <i key={i} class={`at ${kind}`} style={{ left: `${place(at)}%` }} />
      ))}
      {longer && <span class="longer">{formatMs((moments.ackAt ?? end) - start)} ▸</span>}
    </div>
  )
}

const LEGEND = [
  ['bar proved', 'taken out'],
  ['bar waiting', 'waits'],
  ['bar unproved', 'not proved'],
  ['bar weak', 'only observed'],
  ['held', 'hook held'],
  ['after', 'its own shutdown'],
  ['at accepted', 'Admin API accepted'],
  ['at gateway', 'a gateway confirmed'],
  ['at ack', 'hook answered'],
  ['at deadline', 'its deadline']
] as const

export function Legend() {
  return (
    <ul class="legend">
      {LEGEND.map(([kind, label]) => (
        <li key={kind}>
          <span class="swatch" aria-hidden="true">
            <i class={kind} />
          </span>
          {label}
        </li>
      ))}
    </ul>
  )
}

/** The time axis above the lanes: five equal steps. */
export function Axis({ scaleMs }: { scaleMs: number }) {
  return (
    <div class="axis" aria-hidden="true">
      {[0, 0.25, 0.5, 0.75, 1].map(part => (
        <span key={part} style={{ left: `${part * 100}%` }}>
          {formatMs(scaleMs * part)}
        </span>
      ))}
    </div>
  )
}
