import { useMemo } from 'preact/hooks'
import type { Freshness, GatewayView, Snapshot, WatchView } from '../../report/snapshot/snapshot.ts'
import { ago, count, formatMs } from '../model/format.ts'
import { gatewayArrivals, gatewayLags, type Quantiles } from '../model/lags.ts'
import type { Lane } from '../model/lanes.ts'
import { availableWords, gatewayState, type Tone } from '../model/words.ts'
import { Mark, Section, Table, Time } from '../parts/basics.tsx'

interface GatewaysProps {
  snapshot: Snapshot
  lanes: readonly Lane[]
  now: number
}

/** The gateways with their workers: the evidence that each can give, and the age of its reports. Below them, the agent's watches. */
export function Gateways({ snapshot, lanes, now }: GatewaysProps) {
  const { gateways, watches, arrivals } = snapshot
  const out = useMemo(() => gatewayLags(lanes), [lanes])
  const arrived = useMemo(() => gatewayArrivals(arrivals), [arrivals])
  const newest = Math.max(0, ...gateways.flatMap(({ workers }) => workers.map(({ revision }) => revision)))
  return (
    <Section
      id="gateways"
      title="Gateways and workers"
      head={<span class="quiet spread">{count(gateways.length, 'gateway')}</span>}
    >
      <Table
        label="Gateways and workers"
        columns={['Gateway', 'State', 'Evidence', 'Out', 'In', 'Workers', 'Barrier', 'Control API']}
        rows={gateways.map(gateway => ({
          key: gateway.id,
          cells: [
            <>
              {gateway.name}
              <div class="quiet small">
                {gateway.ip}
                {gateway.host && ` on ${gateway.host}`}
              </div>
            </>,
            <Mark {...gatewayState(gateway)} />,
            <Mark {...availableWords(gateway)} />,
            <Lags of={out.get(gateway.name)} />,
            <Lags of={arrived.get(gateway.name)} />,
            <Workers gateway={gateway} newest={newest} now={now} />,
            <Fresh of={gateway.barrier} now={now} />,
            <Fresh of={gateway.control} now={now} />
          ],
          more: problemsOf(gateway)
        }))}
      />
      <ul class="watches" aria-label="Watches">
        {watches.map(({ kind, state, objects, lastEventAt, problem }) => (
          <li key={kind}>
            <Mark tone={WATCH[state]} label={`${kind} ${state}`} />{' '}
            <span class="quiet small">
              {count(objects, 'object')}
              {lastEventAt !== null && (
                <>
                  , heard <Time at={lastEventAt} now={now} as="ago" />
                </>
              )}
              {problem && `, ${problem}`}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** The problems of a gateway, each text once: the reason for weaker evidence is usually also the barrier's problem. */
function problemsOf({ why, control, barrier }: GatewayView) {
  const named = { Evidence: why, 'Control API': control?.problem ?? '', Barrier: barrier?.problem ?? '' }
  const byText = new Map(Object.entries(named).map(([what, text]) => [text, what]))
  byText.delete('')
  if (byText.size === 0) return null
  return [...byText].map(([text, what]) => (
    <p key={what}>
      <Mark tone="bad" label={what} /> {text}
    </p>
  ))
}

const WATCH: Record<WatchView['state'], Tone> = { connecting: 'busy', live: 'good', stale: 'bad' }

function Lags({ of }: { of: Quantiles | undefined }) {
  if (!of) return <span class="quiet">–</span>
  return (
    <>
      {formatMs(of.p50)}
      <div class="quiet small">
        longest {formatMs(of.max)} of {of.n}
      </div>
    </>
  )
}

/** How many workers have applied the newest revision, and which have not. */
function Workers({
  gateway: { workers },
  newest,
  now
}: {
  gateway: GatewayView
  newest: number
  now: number
}) {
  if (workers.length === 0) return <span class="quiet">only the plugin reports them</span>
  const late = workers.filter(({ revision }) => revision < newest)
  return (
    <>
      {workers.length - late.length} of {workers.length} at revision {newest}
      {late.map(({ id, revision, appliedAt }) => (
        <div key={id} class="small">
          worker {id}: {revision} (−{newest - revision})
          {appliedAt !== null && `, applied ${ago(appliedAt, now)}`}
        </div>
      ))}
    </>
  )
}

function Fresh({ of, now }: { of: Freshness | null; now: number }) {
  if (!of) return <span class="quiet">–</span>
  const last = of.lastSuccessAt === null ? 'never' : <Time at={of.lastSuccessAt} now={now} as="ago" />
  if (!of.problem) return <span>{last}</span>
  return (
    <>
      <Mark tone="bad" label="fails" />
      <div class="quiet small">last answer {last}</div>
    </>
  )
}
