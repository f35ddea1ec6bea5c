import { useMemo } from 'preact/hooks'
import type { Freshness, GatewayView, Snapshot, WatchView } from '../../page/snapshot.ts'
import { ago, count, formatMs } from '../model/format.ts'
import { gatewayArrivals, gatewayLags } from '../model/gateway-lags.ts'
import type { Quantiles } from '../model/lag-series.ts'
import type { Lane } from '../model/lanes.ts'
import { Mark, type Tone } from '../parts/mark.tsx'

interface GatewaysProps {
  snapshot: Snapshot
  lanes: readonly Lane[]
  now: number
}

/** What each gateway can prove, and how fresh its reports are: gateways with their workers, and the agent's watches. */
export function Gateways({ snapshot, lanes, now }: GatewaysProps) {
  const lags = useMemo(() => gatewayLags(lanes), [lanes])
  const { gateways, watches, arrivals, holders } = snapshot
  const arrivalLags = useMemo(() => gatewayArrivals(arrivals), [arrivals])
  const apart = useMemo(
    () =>
      Map.groupBy(
        holders.flatMap(holder => holder.atGateways),
        one => one.gateway
      ),
    [holders]
  )
  const newest = Math.max(0, ...gateways.flatMap(({ workers }) => workers.map(({ revision }) => revision)))
  return (
    <section aria-labelledby="gateways">
      <div class="section-head">
        <h2 id="gateways">Gateways and workers</h2>
        <span class="quiet spread">{count(gateways.length, 'gateway')}</span>
      </div>
      <div class="wide" tabIndex={0} role="region" aria-labelledby="gateways">
        <table class="plain full">
          <thead>
            <tr>
              <th scope="col">Gateway</th>
              <th scope="col">State</th>
              <th scope="col">Evidence it can give</th>
              <th scope="col">Confirms after</th>
              <th scope="col">Routes after</th>
              <th scope="col">Differs</th>
              <th scope="col">Workers, by configuration revision</th>
              <th scope="col">Control API</th>
              <th scope="col">Barrier</th>
              <th scope="col">Instance</th>
            </tr>
          </thead>
          <tbody>
            {gateways.map(gateway => (
              <tr key={gateway.id}>
                <th scope="row">
                  {gateway.name}
                  <div class="quiet small">
                    {gateway.ip}
                    {gateway.host && ` on ${gateway.host}`}
                  </div>
                </th>
                <td>
                  <Mark {...stateOf(gateway)} />
                </td>
                <td>
                  <Mark tone={TONES[gateway.available]} label={gateway.available} />
                  {gateway.why && <div class="quiet small">{gateway.why}</div>}
                </td>
                <td>
                  <Lags of={lags.get(gateway.name)} />
                </td>
                <td>
                  <Lags of={arrivalLags.get(gateway.name)} />
                </td>
                <td>
                  <Apart from={apart.get(gateway.name)} now={now} />
                </td>
                <td>
                  <Workers gateway={gateway} newest={newest} now={now} />
                </td>
                <td>
                  <Fresh of={gateway.control} now={now} />
                </td>
                <td>
                  <Fresh of={gateway.barrier} now={now} />
                </td>
                <td class="quiet">{gateway.instance?.slice(0, 8) ?? '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <ul class="watches" aria-label="Watches">
        {watches.map(watch => (
          <li key={watch.kind}>
            <Mark tone={WATCH[watch.state]} label={`${watch.kind} ${watch.state}`} />
            <span class="quiet small">
              {count(watch.objects, 'object')}
              {watch.lastEventAt !== null && `, heard ${ago(watch.lastEventAt, now)}`}
              {watch.problem && `, ${watch.problem}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Only the barrier is a proof. */
const TONES: Record<GatewayView['available'], Tone> = {
  barrier: 'good',
  observed: 'busy',
  accepted: 'bad',
  timer: 'bad'
}
const WATCH: Record<WatchView['state'], Tone> = { connecting: 'busy', live: 'good', stale: 'bad' }

function stateOf({ ready, terminating }: GatewayView): { tone: Tone; label: string } {
  if (terminating) return { tone: 'busy', label: 'ending' }
  return ready ? { tone: 'good', label: 'ready' } : { tone: 'bad', label: 'not ready' }
}

function Lags({ of }: { of: Quantiles | undefined }) {
  if (!of) return <span class="quiet">–</span>
  return (
    <>
      {formatMs(of.p50)}
      <div class="quiet small">p99 {formatMs(of.p99)}</div>
    </>
  )
}

/** How far the gateway is behind the Admin API, as one of its workers reported. */
function Apart({ from, now }: { from: readonly { readonly since: number }[] | undefined; now: number }) {
  if (!from) return <span class="quiet">–</span>
  return (
    <>
      <Mark tone="busy" label={count(from.length, 'node')} />
      <div class="quiet small">
        for {formatMs(Math.max(0, now - Math.min(...from.map(({ since }) => since))))}
      </div>
    </>
  )
}

function Workers({ gateway, newest, now }: { gateway: GatewayView; newest: number; now: number }) {
  if (gateway.workers.length === 0) return <span class="quiet">only our plugin tells</span>
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
  if (of.problem) return <Mark tone="bad" label={of.problem} />
  return <span>{of.lastSuccessAt === null ? 'never' : ago(of.lastSuccessAt, now)}</span>
}
