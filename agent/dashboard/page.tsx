import { useMemo } from 'preact/hooks'
import { lanesOf } from './model/lanes.ts'
import { Drains } from './cards/drains-card.tsx'
import { Gateways } from './cards/gateways-card.tsx'
import { Header } from './cards/header.tsx'
import { Hidden } from './cards/hidden-card.tsx'
import { Holders } from './cards/holders-card.tsx'
import { Lag } from './cards/lag-card.tsx'
import { Tiles } from './cards/tiles.tsx'
import { Unproved } from './cards/unproved.tsx'
import type { Store } from './store.ts'
import { useTheme } from './theme.ts'
import { agentNow, useShown } from './use.ts'

export function Page({ store }: { store: Store }) {
  const shown = useShown(store)
  const [theme, toggle] = useTheme()
  const { snapshot, link } = shown
  const lanes = useMemo(
    () => (snapshot ? lanesOf(snapshot.drains, snapshot.past) : []),
    [snapshot?.drains, snapshot?.past]
  )
  // Live drains change ten times a second, finished ones only now and then.
  const over = useMemo(() => lanesOf([], snapshot?.past ?? []), [snapshot?.past])
  const lags = snapshot?.lags
  const arrivals = snapshot?.arrivals
  const sleepMs = snapshot?.agent.sleepMs ?? 0
  // Preact skips an identical element: it costs nothing, however often the rest changes.
  const lag = useMemo(
    () => <Lag samples={lags ?? []} arrivals={arrivals ?? []} sleepMs={sleepMs} theme={theme} />,
    [lags, arrivals, sleepMs, theme]
  )
  const hidden = useMemo(() => <Hidden places={snapshot?.hidden ?? []} />, [snapshot?.hidden])
  const now = agentNow(shown)
  // Ages are shown in whole seconds.
  const second = Math.floor(now / 1000) * 1000
  const holders = useMemo(
    () => <Holders holders={snapshot?.holders ?? []} lanes={over} now={second} />,
    [snapshot?.holders, over, second]
  )
  return (
    <>
      <Header snapshot={snapshot} link={link} theme={theme} onTheme={toggle} />
      <main class={link === 'lost' ? 'page stale' : 'page'}>
        {snapshot ? (
          <>
            <Tiles snapshot={snapshot} />
            <Drains shown={shown} lanes={lanes} />
            <Unproved lanes={lanes} snapshot={snapshot} />
            {hidden}
            {lag}
            <Gateways snapshot={snapshot} lanes={lanes} now={now} />
            {holders}
            <footer class="quiet">
              apisix-drain {snapshot.agent.version} · evidence asked for: {snapshot.agent.minimumGrade} ·{' '}
              <a href="api/state">this page as JSON</a>
            </footer>
          </>
        ) : (
          <p class="empty">Waiting for the agent.</p>
        )}
      </main>
    </>
  )
}
