import { useEffect, useMemo } from 'preact/hooks'
import type { Snapshot } from '../../report/snapshot/snapshot.ts'
import type { Link } from '../agent.ts'
import { fullMoment, wallClock } from '../model/format.ts'
import { lastHourOf, sentenceOf, titleOf } from '../model/headline.ts'
import { hashOf, viewOf } from '../model/view.ts'
import type { Tone } from '../model/words.ts'
import { Mark } from '../parts/basics.tsx'

interface HeaderProps {
  snapshot: Snapshot | undefined
  link: Link
  /** The agent's clock, in ms. */
  now: number
}

const LINKS: Record<Link, { tone: Tone; label: string; title: string }> = {
  connecting: { tone: 'busy', label: 'connecting', title: 'The page asks the agent.' },
  live: { tone: 'good', label: 'live', title: 'The agent answers every second.' },
  lost: { tone: 'bad', label: 'not connected', title: 'The page tries again by itself.' }
}

export function Header({ snapshot, link, now }: HeaderProps) {
  const sentence = snapshot && sentenceOf(snapshot)
  const lost = link === 'lost' && snapshot
  const level = lost ? 'bad' : (sentence?.level ?? 'busy')
  const head = lost ? 'The agent is not reached.' : (sentence?.head ?? 'Connecting to the agent.')
  // A screen reader tells of each change of the level, and not of each number: speech takes seconds.
  const announced = useMemo(() => (snapshot ? head : ''), [level, link, snapshot === undefined])
  const title = titleOf(snapshot, level)
  useEffect(() => {
    document.title = title
  }, [title])
  return (
    <header class={`top ${level}`}>
      <div class="brand">
        <span class="name">apisix-drain</span>
        <Mark {...LINKS[link]} />
        {snapshot && (
          <span class="quiet small" title="The agent that answers.">
            {snapshot.agent.name}
          </span>
        )}
        {snapshot && (
          <time class="quiet small wall" dateTime={new Date(now).toISOString()} title={fullMoment(now)}>
            {wallClock(now)}
          </time>
        )}
      </div>
      <h1>
        <span class="sentence">{head}</span>
        <span class="rest">
          {lost ? `The page shows the state at ${wallClock(snapshot.at)}. Trying again.` : sentence?.rest}
        </span>
      </h1>
      {snapshot && !lost && <Beside snapshot={snapshot} facts={sentence?.facts ?? ''} />}
      <p class="hidden" role="status">
        {announced}
      </p>
    </header>
  )
}

const TONES = { well: 'good', busy: 'busy', bad: 'bad' } as const

/** The figures of the moment, and the result of the last hour with a link to what it names. */
function Beside({ snapshot, facts }: { snapshot: Snapshot; facts: string }) {
  const { level, text, drain } = lastHourOf(snapshot)
  return (
    <p class="beside small">
      <span class="quiet">{facts}</span>
      <span class="hour">
        <Mark tone={TONES[level]} label={text} />
        {drain && <a href={`#${hashOf({ ...viewOf(''), show: 'not proved', drain })}`}>Show it</a>}
      </span>
    </p>
  )
}
