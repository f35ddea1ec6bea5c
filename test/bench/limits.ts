import type { SectionName } from './sections.ts'
import type { Row } from './table.ts'

type Sections = Partial<Record<SectionName, readonly Row[]>>

/** A limit that the project sets for itself. A figure above it is shown as missed. */
interface Limit {
  readonly what: string
  readonly section: SectionName
  readonly row: Readonly<Record<string, number | string>>
  readonly column: string
  readonly most?: number
  /** The lower limit of an arm that must lose requests. If it lost none, the zeros of other arms would prove nothing. */
  readonly least?: number
  /** The reason that the table shows if the limit is missed. */
  readonly why: string
}

const TWO_PUTS =
  'the bare round trip is one put to each gateway. A proof takes two, because a seal rests on the words of the workers, and the event and the hook are two calls more'
const WORDS =
  'each gateway has its workers report on 500 entries before they are sealed; agent, gateways, clients and the API server share the cores'
const EVENT = 'agent, gateway, and the API server that sends the events share the cores'

const felt = (mode: string, gateways: string, column: 'p50' | 'p99', most: number): Limit => ({
  what: `excess in a scale-down, ${mode}, ${gateways}, ${column}, ms`,
  section: 'excess',
  row: { mode, gateways },
  column: `scale-down ${column} ms`,
  most,
  why: 'gateways, load, kubelet, and the API server share the cores: see the bare trips'
})

const naive = (arm: string): Limit => ({
  what: `${arm}: lost per 1,000 pods`,
  section: 'lost',
  row: { arm },
  column: 'lost per 1,000 pods, median',
  least: 1,
  why: 'no request was lost here, so this load does not tell this arm from the others'
})

const LIMITS: readonly Limit[] = [
  {
    what: 'drain-barrier: lost per 1,000 pods, every round',
    section: 'lost',
    row: { arm: 'drain-barrier' },
    column: 'every round',
    most: 0,
    why: 'see the round'
  },
  naive('no-hook'),
  naive('admin-answered'),
  ...['etcd-1.8', 'standalone', 'discovery'].flatMap(mode =>
    ['all Ready', 'one of three NotReady'].flatMap(gateways => [
      felt(mode, gateways, 'p50', 15),
      felt(mode, gateways, 'p99', 60)
    ])
  ),
  {
    what: 'overhead p50, ratio',
    section: 'overhead',
    row: { 'hook after the deletion, ms': 0 },
    column: 'ratio p50',
    most: 1.5,
    why: TWO_PUTS
  },
  {
    what: 'overhead p99, ratio',
    section: 'overhead',
    row: { 'hook after the deletion, ms': 0 },
    column: 'ratio p99',
    most: 3,
    why: TWO_PUTS
  },
  {
    what: '500 of 5,000 at once, a fresh agent, p99 of every round, ms',
    section: 'at-once',
    row: { ending: 500, 'drained before': 0 },
    column: 'p99 of the rounds',
    most: 1000,
    why: WORDS
  },
  {
    what: 'event to barrier, 10,000 pods, p99, ms',
    section: 'watch',
    row: { pods: 10_000 },
    column: 'event to barrier p99 ms',
    most: 20,
    why: EVENT
  }
]

/** Returns each limit with the measured figure. With several rounds, the figure is the largest of them. */
export function limits(sections: Sections): readonly Row[] {
  return LIMITS.flatMap(({ what, section, row, column, most = Infinity, least = 0, why }) => {
    const found = sections[section]?.find(one =>
      Object.entries(row).every(([name, value]) => one[name] === value)
    )
    if (!found) return []
    const measured = Math.max(...String(found[column]).split(', ').map(Number))
    const isMet = measured >= least && measured <= most
    const bound = least > 0 ? `at least ${least}` : `at most ${most}`
    return [{ limit: what, bound, measured, '': isMet ? 'met' : '**missed**', why: isMet ? '' : why }]
  })
}
