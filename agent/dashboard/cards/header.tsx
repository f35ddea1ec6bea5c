import type { Snapshot } from '../../page/snapshot.ts'
import { clock } from '../model/format.ts'
import { sentenceOf } from '../model/sentence.ts'
import type { Link } from '../store.ts'
import type { Theme } from '../theme.ts'
import { Mark, type Tone } from '../parts/mark.tsx'

interface HeaderProps {
  snapshot: Snapshot | undefined
  link: Link
  theme: Theme
  onTheme: () => void
}

const LINKS: Record<Link, { tone: Tone; label: string }> = {
  connecting: { tone: 'busy', label: 'connecting' },
  live: { tone: 'good', label: 'live' },
  lost: { tone: 'bad', label: 'not connected' }
}

export function Header({ snapshot, link, theme, onTheme }: HeaderProps) {
  const said = snapshot && sentenceOf(snapshot)
  const lost = link === 'lost' && snapshot
  const level = lost ? 'bad' : (said?.level ?? 'busy')
  return (
    <header class={`top ${level}`}>
      <div class="brand">
        <span class="name">apisix-drain</span>
        <Mark {...LINKS[link]} />
        <button
          type="button"
          class="ghost-button"
          onClick={onTheme}
          aria-label={`Switch to ${theme === 'dark' ? 'light' : 'dark'} colours`}
        >
          {theme === 'dark' ? 'Light' : 'Dark'}
        </button>
      </div>
      <h1>
        <span aria-live="polite">
          {lost ? 'The agent is not reached.' : (said?.head ?? 'Connecting to the agent.')}
        </span>
        <span class="rest">
          {lost ? `Shown is what it said at ${clock(snapshot.at)}. Trying again.` : said?.rest}
        </span>
      </h1>
    </header>
  )
}
