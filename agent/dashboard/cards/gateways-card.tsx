import { useMemo } from 'preact/hooks'
import type { Freshness, GatewayView, Snapshot, WatchView } from '../../report/snapshot/snapshot.ts'
import { ago, count, formatMs } from '../model/format.ts'
import { gatewayArrivals, gatewayLags } from '../model/gateway-lags.ts'
import type { Quantiles } from '../model/lag-series.ts'
import type { Lane } from '../model/lanes.ts'
import { availableWords, gatewayState, type Tone } from '../model/words.ts'
import { Mark } from '../parts/mark.tsx'
import { Term } from '../parts/term.tsx'
import { Time } from '../parts/time.tsx'

interface GatewaysProps {
  snapshot: Snapshot
  lanes: readonly Lane[]
  now: number
}

/** The gateways with their workers: the evidence that each can give, and the age of its reports. Below them, the agent's watches. */
export function Gateways({ snapshot, lanes, now }: GatewaysProps) {
  const lags = useMemo(() => gatewayLags(lanes), [lanes])
  const { gateways, watches, arrivals } = snapshot
  const arrivalLags = useMemo(() => gatewayArrivals(arrivals), [arrivals])
  const newest = Math.max(0, ...gateways.flatMap(({ workers }) => workers.map(({ revision }) => revision)))
  return (
    <section aria-labelledby="gateways">
      <div class="section-head">
        <h2 id="gateways">Gateways and workers</h2>
        <span class="quiet spread">{count(gateways.length, 'gateway')}</span>
      </div>
      <div class="wide" tabIndex={0} role="region" aria-labelledby="gateways">
        <table class="plain full cards">
          <thead>
            <tr>
              <th scope="col">
                <Term of="gateway">Gateway</Term>
              </th>
              <th scope="col">State</th>
              <th scope="col">
                <Term of="evidence">Evidence it can give</Term>
              </th>
              <th scope="col">Out</th>
              <th scope="col">In</th>
              <th scope="col">
                <Term of="revision">Workers, by configuration revision</Term>
              </th>
              <th scope="col">Control API</th>
              <th scope="col">Barrier</th>
              <th scope="col">Instance</th>
            </tr>
          </thead>
          {gateways.map(gateway => (
            <GatewayRows
              key={gateway.id}
              gateway={gateway}
              lag={lags.get(gateway.name)}
              arrival={arrivalLags.get(gateway.name)}
              newest={newest}
              now={now}
            />
          ))}
        </table>
      </div>
      <ul class="watches" aria-label="Watches">
        {watches.map(watch => (
          <li key={watch.kind}>
            <Mark tone={WATCH[watch.state]} label={`${watch.kind} ${watch.state}`} />
            <span class="quiet small">
              {count(watch.objects, 'object')}
              {watch.lastEventAt !== null && (
                <>
                  , heard <Time at={watch.lastEventAt} now={now} as="ago" />
                </>
              )}
              {watch.problem && `, ${watch.problem}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

interface GatewayRowsProps {
  gateway: GatewayView
  lag: Quantiles | undefined
  arrival: Quantiles | undefined
  newest: number
  now: number
}

/** One gateway. Its problems have a row of their own, because sentences in a cell would make all other columns too narrow. */
function GatewayRows({ gateway, lag, arrival, newest, now }: GatewayRowsProps) {
  const problems = problemsOf(gateway)
  return (
    <tbody>
      <tr class={problems.length > 0 ? 'with-more' : ''}>
        <th scope="row">
          {gateway.name}
          <div class="quiet small">
            {gateway.ip}
            {gateway.host && ` on ${gateway.host}`}
          </div>
        </th>
        <td data-label="State">
          <Mark {...gatewayState(gateway)} />
        </td>
        <td data-label="Evidence">
          <Mark {...availableWords(gateway)} />
        </td>
        <td data-label="Out">
          <Lags of={lag} />
        </td>
        <td data-label="In">
          <Lags of={arrival} />
        </td>
        <td data-label="Workers">
          <Workers gateway={gateway} newest={newest} now={now} />
        </td>
        <td data-label="Control API">
          <Fresh of={gateway.control} now={now} />
        </td>
        <td data-label="Barrier">
          <Fresh of={gateway.barrier} now={now} />
        </td>
        <td class="quiet" data-label="Instance">
          {gateway.instance?.slice(0, 8) ?? '–'}
        </td>
      </tr>
      {problems.length > 0 && (
        <tr>
          <td colSpan={9} class="words">
            {problems.map(({ what, text }) => (
              <p key={what}>
                <Mark tone="bad" label={what} /> {text}
              </p>
            ))}
          </td>
        </tr>
      )}
    </tbody>
  )
}

/** The problems of a gateway, each text once: the reason for weaker evidence is usually also the barrier's problem. */
function problemsOf({ why, control, barrier }: GatewayView) {
  const found = [
    { what: 'Barrier', text: barrier?.problem ?? '' },
    { what: 'Control API', text: control?.problem ?? '' },
    { what: 'Evidence', text: why }
  ]
  return found.filter(({ text }, i) => text !== '' && found.findIndex(other => other.text === text) === i)
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

function Workers({ gateway, newest, now }: { gateway: GatewayView; newest: number; now: number }) {
  if (gateway.workers.length === 0) return <span class="quiet">only the plugin reports them</span>
  return (
    <ul class="workers">
      {gateway.workers.map(({ id, revision, appliedAt }) => {
        const behind = newest - revision
        const since = appliedAt === null ? '' : `, applied ${ago(appliedAt, now)}`
        return (
          <li
            key={id}
            class={behind > 0 ? 'behind' : ''}
            title={`worker ${id}: revision ${revision}${since}`}
          >
            <span class="quiet">{id}</span> {revision}
            {behind > 0 && <b> −{behind}</b>}
          </li>
        )
      })}
    </ul>
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
