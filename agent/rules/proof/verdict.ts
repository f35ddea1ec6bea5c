import {
  longLivedWords,
  countOf,
  together,
  type Drain,
  type GatewayReport,
  type HolderReport,
  type Proof,
  type Verdict,
  type LongLived,
  type Grade
} from '../drain/drain.ts'
import type { Millis, GatewayFact, NodeKey } from '../drain/facts.ts'
import type { Found, HiddenPlace } from '../plan/hidden.ts'

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

/** How long the first report of a barrier may take to show, in ms. */
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
  const byHand = evidence.gateways.some(({ gateway }) => gateway.byHand) ? `; ${BY_HAND}` : ''
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
      why: [sentence(shown.reached, obstacles), succeededWords(succeeded), leftWords(longLived), byHand].join(
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
        // Beside a place that rules the proof out, what is only late misleads.
        ...(wall || evidence.gatewaysKnown ? [] : ['the gateways are not known yet']),
        ...(wall ? [] : obstacles)
      ]) + byHand,
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
export const listed = (all: readonly string[]): string =>
  all.slice(0, 3).join(', ') + (all.length > 3 ? `, and ${all.length - 3} more` : '')

/** The reads of one gateway's Control API for one drain, each on a new connection, since its removal was accepted. */
export interface Observation {
  /**
   * Consecutive reads in which no holder listed the node, each on its own connection and begun after the removal was accepted.
   * 0 again after a read that shows the node. The Control API does not report which worker answers, and a frozen worker never
   * answers (measured on APISIX 3.18). So this is a sample, never a proof.
   */
  readonly cleanReads: number
  readonly firstCleanAt: Millis | undefined
  /** The last successful read still showed the node. */
  readonly stillListed: boolean
  /** Why the last read failed, or where it still found the node; empty if it was clean. */
  readonly problem: string
}

/**
 * The merged words of all workers of one gateway about all addresses of one pod (docs/barrier-api.md). A word has the places in which a
 * worker would choose the pod, in the configuration that it has, and the other choices there.
 */
export interface Word {
  /** Every serving worker has reported on each address since its entry came, and nothing has changed since. */
  readonly complete: boolean
  /** How many workers have reported, and how many serve. */
  readonly said: number
  readonly asked: number
  readonly places: number
  /** How many places have nodes that a worker cannot see. */
  readonly hidden: number
  /** Names of places without another choice: every node there is denied. */
  readonly sole: readonly string[]
  /** Names of places in which only successors are left. */
  readonly succeeded: readonly string[]
  /** The other choices of the remaining places. */
  readonly others: readonly OtherChoices[]
  /** The number of further places, whose other choices are left out here. */
  readonly cut: number
  /** The tag that names each word, in the order of the addresses; empty while the words are not complete. */
  readonly tags: readonly string[]
  /** The nodes that lead to the pod without its address, and how many more there are. */
  readonly found: readonly Found[]
  readonly more: number
  /** Every worker also seals and counts the L4 sessions to each address. */
  readonly l4: boolean
}

/** The nodes that are left in `places` places, each as `address:port`. `more` further nodes are not listed. */
interface OtherChoices {
  readonly places: number
  readonly nodes: readonly string[]
  readonly more: number
}

/** The last report of one gateway's barrier (the plugin) on one drain. */
export interface BarrierReading {
  readonly at: Millis
  /** When the gateway first told the same as in its current report. The agent may have read the same report many times since. */
  readonly unchangedSince: Millis
  /** Changes when the gateway restarts in full and forgets its entries. */
  readonly instance: string
  /** The plugin found APISIX's internals as it expects them, in every live worker. An unfit report proves nothing. */
  readonly fit: boolean
  readonly entry: 'absent' | 'draining' | 'sealed'
  /** When the gateway sealed the entry, on the agent's clock. */
  readonly sealedAt: Millis | undefined
  /** When, after the seal, the last ordinary request had finished. */
  readonly idleAt: Millis | undefined
  readonly inflight: {
    /** Requests that end by themselves. The pod must not stop before they have ended. */
    readonly requests: number
    readonly long: LongLived
  }
  /** The words of the gateway's workers about the pod's addresses; `undefined`: the workers were not asked. */
  readonly word: Word | undefined
  /** Requests that were sent to the node although it was sealed: a failure inside the gateway. */
  readonly late: number
  /** The `inflight` above was read after the entry was sealed: the fourth step of the guarantee. */
  readonly readAfterSeal: boolean
  /**
   * The gateway has answered for this drain while fit, or with requests in flight. So it is waited for, also if a reload makes it unfit for a
   * moment, or a call fails.
   */
  readonly binding: boolean
  readonly problem: string
}

/** Everything known about one drain, gathered by the loop from the parts that do I/O. */
export interface Evidence {
  /** The pod's node keys: IPs with ports if the pod shares its host's address, otherwise bare IPs. */
  readonly nodes: readonly NodeKey[]
  /** An inventory that is newer than the drain does not list the pod, and none has listed it since. */
  readonly isAbsent: boolean
  /** Why there is no fresh inventory, or empty. */
  readonly inventoryProblem: string
  /** Every holder that lists the pod, or has listed it since the drain began. `removedAt`: first seen without it. */
  readonly holders: readonly (HolderReport & {
    readonly removedAt: Millis | undefined
    readonly observable: boolean
    /** Nobody removes the node, for its next pod has the same address. */
    readonly stays?: true
  })[]
  readonly gateways: readonly {
    readonly gateway: GatewayFact
    readonly observation: Observation | undefined
    readonly barrier: BarrierReading | undefined
    /** See `BarrierKeeper.doubt`. */
    readonly doubt: string
    /** Why the gateway's workers did not allow the seal when last asked. */
    readonly unsealed: string
    /** Its barrier proves nothing, and is not expected to soon. */
    readonly silent: boolean
  }[]
  /** The gateway watch is synced, so the list above is complete. */
  readonly gatewaysKnown: boolean
  /** The entry was sealed because the deadline was near, although some gateway may know no other node. */
  readonly sealForced: boolean
  /** Places in which only successors of the pod are left, by the words. */
  readonly succeeded: readonly string[]
  /** Another pod's entry has named this pod as a successor: requests came to it, whatever lists say. */
  readonly tookOver: boolean
  /** Places from which requests may reach the pod, and which the other fields do not cover. */
  readonly hiddenBy: readonly HiddenPlace[]
  /** A list whose nodes are not all literal addresses, whatever pod they are of. Only without the plugin. */
  readonly notLiteral?: HiddenPlace | undefined
}

/** All times in ms. */
export interface ProofSettings {
  /** What proves a drain, or why nothing does. */
  readonly by: Grade | { readonly why: string; readonly change: string }
  /** Without the plugin: counted from the removal, the least sleep that an answer replaces. */
  readonly settleMs: number
  /** The longest wait for websockets and streams, counted from the start of the drain. */
  readonly longLivedMs: number
}
