import type {
  BarrierReading,
  Evidence,
  Observation,
  ProofSettings,
  Word
} from '../../agent/rules/proof/verdict.ts'
import type { LongLived } from '../../agent/rules/drain/drain.ts'

type GatewayEvidence = Evidence['gateways'][number]
type HolderEvidence = Evidence['holders'][number]

export const PROOF_SETTINGS: ProofSettings = {
  by: 'barrier',
  settleMs: 200,
  longLivedMs: 0
}

/** Requests in flight, as a gateway counts them. */
export const inflight = (requests = 0, long: Partial<LongLived> = {}): BarrierReading['inflight'] => ({
  requests,
  long: { upgraded: 0, sse: 0, streams: 0, oldestMs: 0, ...long }
})

/** A complete word without places. */
export const SAID: Word = {
  complete: true,
  said: 1,
  asked: 1,
  places: 0,
  hidden: 0,
  sole: [],
  succeeded: [],
  others: [],
  cut: 0,
  tags: ['t'],
  found: [],
  more: 0,
  l4: true
}

/** A barrier with full evidence: sealed, idle, read after the seal. */
export const barrier = (differs: Partial<BarrierReading> = {}): BarrierReading => ({
  at: 100,
  unchangedSince: differs.at ?? 100,
  sealedAt: undefined,
  idleAt: undefined,
  instance: 'i1',
  fit: true,
  entry: 'sealed',
  inflight: inflight(),
  word: SAID,
  late: 0,
  readAfterSeal: true,
  binding: false,
  problem: '',
  ...differs
})

/** An observation of a gateway that was read often enough without the node. */
export const observation = (differs: Partial<Observation> = {}): Observation => ({
  cleanReads: 5,
  firstCleanAt: 100,
  stillListed: false,
  problem: '',
  ...differs
})

/** A serving gateway that has not been read yet. */
export const gatewayEvidence = (
  name: string,
  differs: Partial<Omit<GatewayEvidence, 'gateway'>> & { gateway?: Partial<GatewayEvidence['gateway']> } = {}
): GatewayEvidence => ({
  barrier: differs.barrier,
  observation: differs.observation,
  doubt: differs.doubt ?? '',
  unsealed: differs.unsealed ?? '',
  silent: differs.silent ?? false,
  gateway: {
    id: name,
    name,
    ip: '10.1.0.1',
    ready: true,
    terminating: false,
    host: undefined,
    ...differs.gateway
  }
})

/** A holder without the node. */
export const holderEvidence = (key: string, differs: Partial<HolderEvidence> = {}): HolderEvidence => ({
  key,
  state: 'removed',
  why: '',
  removedAt: 50,
  observable: true,
  ...differs
})

/** One holder without the node, an inventory from after the start, and no gateway. */
export const evidence = (differs: Partial<Evidence> = {}): Evidence => ({
  nodes: ['10.0.0.1'],
  isAbsent: false,
  inventoryProblem: '',
  holders: [holderEvidence('upstreams/web')],
  gateways: [],
  gatewaysKnown: true,
  sealForced: false,
  succeeded: [],
  tookOver: false,
  hiddenBy: [],
  ...differs
})
