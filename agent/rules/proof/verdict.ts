import {
  longLivedWords,
  countOf,
  together,
  type Drain,
  type GatewayReport,
  type HolderReport,
  type Proof,
  type Verdict,
  type LongLived
} from '../drain/drain.ts'
import type { Millis } from '../drain/facts.ts'
import type { Evidence } from './evidence.ts'

/** What the gateways show about one drain, by their barriers or by reads. */
interface Shown {
  readonly gateways: readonly GatewayReport[]
  /** Absent unless every gateway has confirmed. */
  readonly proof: Proof | undefined
  /** The proof in words. */
  readonly reached: string
  /** See `Proven.places`. */
  readonly places: number | undefined
  readonly barred: boolean
  readonly obstacles: readonly string[]
  /** No proof can come: `now`, or `soon`, unless a deletion or a first report shows by then. */
  readonly vain: 'now' | 'soon' | undefined
  /** What an operator can change then. */
  readonly change: string | undefined
  /** When to look again, if nothing happens before. */
  readonly until: Millis | undefined
}

/** How long a deletion, or the first report of a barrier, may take to show, in ms. */
const SHOWN_MS = 2000

export const LOAD_IT = 'load the plugin in every gateway: it keeps requests away while the node is listed'

/**
 * The verdict: proven if every gateway has confirmed, their list is complete, and no place leads to the pod in another way. Without hope
 * of that, the hook's own sleep is better than any wait.
 */
export function verdictOf(
  evidence: Evidence,
  { since }: Pick<Drain, 'since'>,
  now: Millis,
  shown: Shown
): Verdict {
  const { hiddenBy: hidden, sealForced: forced, succeeded } = evidence
  const holders = [
    ...evidence.holders.map(({ key, state, why }): HolderReport => ({ key, state, why })),
    ...hidden
      .filter(({ holder }) => !evidence.holders.some(({ key }) => key === holder))
      .map(({ holder, why }): HolderReport => ({ key: holder, state: 'foreign', why }))
  ]
  const longLived = longLivedOf(evidence)
  const told = evidence.gateways.some(({ gateway }) => gateway.byHand) ? `; ${BY_HAND}` : ''
  const { proof, places, obstacles } = shown
  if (proof && evidence.gatewaysKnown && hidden.length === 0)
    return {
      kind: 'proven',
      ...proof,
      places,
      forced,
      succeeded,
      ...(longLived && { longLived }),
      at: now,
      why: [sentence(shown.reached, obstacles), succeededWords(succeeded), leftWords(longLived), told].join(
        ''
      ),
      holders
    }
  const wall = hidden.find(({ isPassing }) => !isPassing)
  const vainAt =
    wall || shown.vain === 'now' ? since : hidden.length > 0 || shown.vain ? since + SHOWN_MS : Infinity
  const vain = vainAt <= now
  const change = (wall ?? hidden[0])?.change ?? shown.change
  const until = Math.min(shown.until ?? Infinity, vain ? Infinity : vainAt)
  const unknown = evidence.gatewaysKnown ? [] : ['the gateways are not known yet']
  return {
    kind: 'waiting',
    lastEndpoint: evidence.holders.some(({ state }) => state === 'kept-last'),
    barred: shown.barred && evidence.gatewaysKnown && hidden.length === 0,
    vain,
    ...(vain && change !== undefined && { change }),
    ...(longLived && { longLived }),
    until: until === Infinity ? undefined : until,
    why:
      sentence(vain ? 'nothing can be proved' : 'waiting', [
        ...hidden.map(({ holder, why }) => `${holder}: ${why}`),
        ...unknown,
        ...obstacles
      ]) + told,
    gateways: shown.gateways,
    holders
  }
}

/** The verdict where the settings rule out every proof. */
export const unprovable = (
  evidence: Evidence,
  drain: Pick<Drain, 'since'>,
  now: Millis,
  { why, change }: { readonly why: string; readonly change: string }
): Verdict =>
  verdictOf(evidence, drain, now, {
    gateways: evidence.gateways.map(({ gateway: { name } }) => ({
      name,
      grade: undefined,
      at: undefined,
      why
    })),
    proof: undefined,
    reached: '',
    places: undefined,
    barred: false,
    obstacles: [why],
    vain: 'now',
    change,
    until: undefined
  })

/** All of them, if each is of this kind, and there is one. An empty list proves nothing: the agent just sees no gateway. */
export function allOf<T, S extends T>(
  all: readonly T[],
  is: (one: T) => one is S
): readonly [S, ...S[]] | undefined {
  const [first, ...rest] = all
  return first !== undefined && is(first) && rest.every(is) ? [first, ...rest] : undefined
}

/** Why gateways have not confirmed. */
export const gatewayObstacles = (reports: readonly GatewayReport[]): string[] =>
  reports.length === 0
    ? ['no gateway is known']
    : reports.filter(({ grade }) => grade === undefined).map(({ name, why }) => `${name}: ${why}`)

/** The long-lived requests by the last count of each gateway; `undefined` if there are none. */
export function longLivedOf({ gateways }: Evidence): LongLived | undefined {
  const longLived = together(gateways.flatMap(({ barrier }) => barrier?.inflight.long ?? []))
  return countOf(longLived) === 0 ? undefined : longLived
}

const succeededWords = (places: readonly string[]): string =>
  places.length === 0 ? '' : `; no other node is left in ${listed(places)}: its successors get these requests`

const leftWords = (longLived: LongLived | undefined): string =>
  longLived ? `; left for the pod to end at SIGTERM: ${longLivedWords(longLived)}` : ''

/** The watch of a selector is complete, but a list in a file may be out of date. */
const BY_HAND = 'the gateways are listed by hand: a gateway that is missing from the list was not asked'

const sentence = (start: string, reasons: readonly string[]): string =>
  reasons.length === 0 ? start : `${start} (${listed(reasons)})`

/** Names at most three; the reports have all of them. */
const listed = (all: readonly string[]): string =>
  all.slice(0, 3).join(', ') + (all.length > 3 ? `, and ${all.length - 3} more` : '')
