import { useMemo, useRef } from 'preact/hooks'
import { agentNow, useAgent } from './agent.ts'
import { Drains } from './cards/drains-card.tsx'
import { Gateways } from './cards/gateways-card.tsx'
import { Header } from './cards/header.tsx'
import { Holders } from './cards/holders-card.tsx'
import { Answers, Hooks } from './cards/hooks-card.tsx'
import { Lag } from './cards/lag-card.tsx'
import { Now } from './cards/now.tsx'
import { Words } from './cards/words-card.tsx'
import { isBlind } from './model/headline.ts'
import { lanesOf } from './model/lanes.ts'
import { useView } from './use-view.ts'

/** The three questions are answered on the first screen: is traffic safe, how far is each upstream behind, which pod is stuck and why. */
export function Page() {
  const shown = useAgent()
  const { view, onView } = useView()
  const { snapshot, link } = shown
  const [lanes, over] = useMemo(() => {
    const { drains = [], past = [] } = snapshot ?? {}
    const over = lanesOf([], past)
    return [[...lanesOf(drains, []), ...over], over]
  }, [snapshot])
  const { lags = [], arrivals = [] } = snapshot ?? {}
  const sleepMs = snapshot?.agent.sleepMs ?? 0
  const now = agentNow(shown)
  // Ages are shown in whole seconds, and charts move every five seconds.
  const second = Math.floor(now / 1000) * 1000
  const charted = Math.floor(now / 5000) * 5000 + 5000
  // Preact skips an element that is the same object. So the chart costs nothing while other parts of the page change.
  const lag = useMemo(
    () => <Lag {...{ samples: lags, arrivals, sleepMs, now: charted, view, onView }} />,
    [lags.length, arrivals.length, sleepMs, charted, view.way, view.range]
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
      <Header snapshot={snapshot} link={link} now={second} />
      <main id="main" tabIndex={-1} ref={main} class={link === 'lost' ? 'page stale' : 'page'}>
        {snapshot ? (
          <>
            <Now snapshot={snapshot} range={view.range} now={second} />
            <Drains shown={shown} lanes={lanes} view={view} onView={onView} />
            <Holders
              holders={snapshot.holders}
              lanes={over}
              arrivals={arrivals}
              now={second}
              isBlind={isBlind(snapshot)}
              view={view}
              onView={onView}
            />
            <Gateways snapshot={snapshot} lanes={over} now={now} />
            {lag}
            <Hooks snapshot={snapshot} />
            <Answers snapshot={snapshot} now={second} />
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
