import { useMemo } from 'preact/hooks'
import type { Snapshot, WorkloadView } from '../../report/snapshot/snapshot.ts'
import { count, formatMs } from '../model/format.ts'
import { decidedBy, worthOf } from '../model/worth.ts'
import { Mark, Name, Section, Table, Time } from '../parts/basics.tsx'

const MOST = 10

/** What hooks are worth, in numbers for decisions: the lag that a sleep would have to cover, the gain of hooks, and the pods without one. */
export function Hooks({ snapshot }: { snapshot: Snapshot }) {
  const { gateways, totals, inventory } = snapshot
  const { hooks } = inventory
  const rows = useMemo(() => worthOf(snapshot), [snapshot])
  const decided = decidedBy(gateways)
  return (
    <Section
      id="worth"
      title="Sleeps and hooks"
      head={<span class="quiet spread">{count(hooks.routed, 'routed workload')}</span>}
    >
      <p class="quiet">
        {totals.hooks > 0 && `${savedWords(totals)}. `}
        {decided &&
          `Failures avoided since the gateways started: ${(decided.moved + decided.succeeded).toLocaleString('en-US')} at most: ${count(decided.moved, 'request')} moved to another node, ${decided.succeeded} to successors; ${decided.refused} refused, ${decided.bypasses} sent to a pod that ends.`}
      </p>
      <Table
        label="Sleeps by workload"
        columns={['Workload', 'Drains', 'Longest sync lag', 'only-apisix would save']}
        rows={rows.slice(0, 1 + MOST).map(row => ({
          key: row.workload,
          cells: [
            row.workload,
            row.drains.toLocaleString('en-US'),
            row.longestMs === null ? '–' : formatMs(row.longestMs),
            row.onlyApisixMs < LEAST_MS ? '–' : `${formatMs(row.onlyApisixMs)} a pod`
          ]
        }))}
      />
      {rows.length > 1 + MOST && (
        <p class="quiet">And {count(rows.length - 1 - MOST, 'other workload')} with fewer drains.</p>
      )}
      {LACKING.map(([kind, what, title]) => (
        <Lacking key={kind} what={what} title={title} list={hooks[kind]} all={hooks.counts[kind]} />
      ))}
    </Section>
  )
}

/** Less than this is the time between two rounds, and no sleep, in ms. */
const LEAST_MS = 250

const LACKING = [
  ['without', 'No hook', 'A pod without a hook gets its SIGTERM while gateways may still send requests.'],
  [
    'early',
    'A container without the hook',
    'This container ends at once, whatever the answer to the others is.'
  ],
  ['bare', 'No fallback', 'If the agent does not answer, the container ends at once.']
] as const

interface LackingProps {
  what: string
  title: string
  list: readonly WorkloadView[]
  all: number
}

function Lacking({ what, title, list, all }: LackingProps) {
  if (all === 0) return null
  const shown = list.slice(0, MOST)
  return (
    <p class="why">
      <Mark tone="busy" label={what} title={title} />{' '}
      {shown.map(({ name, pods }) => `${name} (${count(pods, 'pod')})`).join(', ')}
      {all > shown.length && ` and ${all - shown.length} more`}
    </p>
  )
}

/** The saved time, or why there is none. */
const savedWords = ({ savedMs, hooks }: Snapshot['totals']): string =>
  savedMs >= 0
    ? `${formatMs(savedMs)} saved over ${count(hooks, 'hook')}`
    : `${count(hooks, 'hook')} took ${formatMs(-savedMs)} longer: they waited for requests in flight, which a sleep does not`

const NEWEST = 20

/** The newest answers to hooks, those of other agents by way of the gateways, and what this agent lacks. */
export function Answers({ snapshot, now }: { snapshot: Snapshot; now: number }) {
  const { acks, agent, gateways } = snapshot
  if (acks.length + agent.missingParts.length === 0) return null
  return (
    <Section
      id="answers"
      title="Answers to hooks"
      head={
        <span class="quiet spread">
          {count(acks.length, 'answer')} known to {agent.name}
        </span>
      }
    >
      {!gateways.some(({ plugin }) => plugin !== null) && (
        <p class="note">No gateway has the barrier: these are the answers of this agent only.</p>
      )}
      {agent.missingParts.map(({ part, why }) => (
        <p key={part} class="note">
          This agent is not ready: <b>{part}</b> {why}
        </p>
      ))}
      <Table
        label="Answers to hooks"
        columns={['Pod', 'Answer', 'Evidence', 'Took', 'By', 'When']}
        rows={acks.slice(0, NEWEST).map(({ at, by, ack }) => ({
          key: `${ack.pod.uid} ${at}`,
          cells: [
            <Name text={`${ack.pod.namespace}/${ack.pod.name}`} />,
            <Mark tone={ack.status === 200 ? 'good' : 'bad'} label={`${ack.status} ${ack.result}`} />,
            ack.evidence,
            formatMs(ack.elapsedMs),
            by,
            <Time at={at} now={now} />
          ],
          more: ack.status === 200 ? '' : ack.why
        }))}
      />
    </Section>
  )
}
