import { useMemo, useRef } from 'preact/hooks'
import { lanesOf } from './model/lanes.ts'
import { Answers } from './cards/answers-card.tsx'
import { Drains } from './cards/drains-card.tsx'
import { Gateways } from './cards/gateways-card.tsx'
import { Header } from './cards/header.tsx'
import { Hidden } from './cards/hidden-card.tsx'
import { Holders } from './cards/holders-card.tsx'
import { Lag } from './cards/lag-card.tsx'
import { Tiles } from './cards/tiles.tsx'
import { Words } from './cards/words-card.tsx'
import { Worth } from './cards/worth-card.tsx'
import type { Store } from './store.ts'
import { useTheme } from './theme.ts'
import { agentNow, useShown } from './use.ts'
import { useView } from './use-view.ts'

export function Page({ store }: { store: Store }) {
  const shown = useShown(store)
  const [theme, toggle] = useTheme()
  const { view, onView } = useView()
  const { snapshot, link } = shown
  const [lanes, over] = useMemo(() => {
    const { drains = [], past = [], unproved = [] } = snapshot ?? {}
    // The drains that were not proved are kept for longer than the others.
    const over = [...new Map(lanesOf([], [...past, ...unproved]).map(lane => [lane.id, lane])).values()]
    return [[...lanesOf(drains, []), ...over], over]
  }, [snapshot])
  const lags = snapshot?.lags
  const arrivals = snapshot?.arrivals
  const sleepMs = snapshot?.agent.sleepMs ?? 0
  const now = agentNow(shown)
  // Ages are shown in whole seconds, and charts move every five seconds.
  const second = Math.floor(now / 1000) * 1000
  const charted = Math.floor(now / 5000) * 5000 + 5000
  // Preact skips an element that is the same object. So the charts cost nothing while other parts of the page change.
  const lag = useMemo(
    () => (
      <Lag
        samples={lags ?? []}
        arrivals={arrivals ?? []}
        sleepMs={sleepMs}
        now={charted}
        theme={theme}
        view={view}
        onView={onView}
      />
    ),
    [lags?.length, arrivals?.length, sleepMs, charted, theme, view.way, view.range]
  )
  const main = useRef<HTMLElement>(null)
  const skip = (event: Event) => {
    // The address holds the view, so the browser cannot follow a link to a position in the page.
    event.preventDefault()
    main.current?.focus()
    main.current?.scrollIntoView()
  }
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Header snapshot={snapshot} link={link} now={second} theme={theme} onTheme={toggle} />
      <main id="main" tabIndex={-1} ref={main} class={link === 'lost' ? 'page stale' : 'page'}>
        {snapshot ? (
          <>
            <Tiles snapshot={snapshot} range={view.range} now={second} />
            <Drains shown={shown} lanes={lanes} view={view} onView={onView} />
            <Hidden places={snapshot.hidden} />
            {lag}
            <Worth snapshot={snapshot} />
            {snapshot.acks.length + snapshot.agent.missingParts.length > 0 && (
              <Answers snapshot={snapshot} now={second} />
            )}
            <Gateways snapshot={snapshot} lanes={over} now={now} />
            <Holders holders={snapshot.holders} lanes={over} now={second} view={view} onView={onView} />
            <Words />
            <footer class="quiet">
              apisix-drain {snapshot.agent.version} · <a href="api/state">this page as JSON</a>
            </footer>
          </>
        ) : (
          <p class="empty">Waiting for the agent.</p>
        )}
      </main>
    </>
  )
}
