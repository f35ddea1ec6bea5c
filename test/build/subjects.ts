import {
  longLivedWords,
  type LongLived,
  type Drain,
  type Hook,
  type Verdict,
  type DrainSettings,
  type Seen
} from '../../agent/rules/drain/drain.ts'
import type { BarrierReading, Evidence, ProofSettings } from '../../agent/rules/proof/verdict.ts'
import { proveByReads } from '../../agent/rules/proof/observed.ts'
import { prove } from '../../agent/rules/proof/proof.ts'
import { answer, budgetProblems, deadlineOf } from '../../agent/rules/drain/answer.ts'
import type { PodFact, PodUid } from '../../agent/rules/drain/facts.ts'
import { parseDuration, readOptions } from '../../agent/rules/drain/annotations.ts'
import { begin, step } from '../../agent/rules/drain/step.ts'
import { nodesOf, type Holder, type PlanSettings } from '../../agent/rules/plan/holder.ts'
import { plan } from '../../agent/rules/plan/plan.ts'
import {
  areWhole,
  candidatesOf,
  chosenOf,
  groupOf,
  mayTakeOver,
  servicePortsOf,
  nodesOfAll
} from '../../agent/rules/plan/successors.ts'
import { DRAIN_SETTINGS, drainOf, drainsOf, hook, proven, seen, waiting } from './drain.ts'
import {
  PROOF_SETTINGS,
  barrier,
  evidence,
  gatewayEvidence,
  holderEvidence,
  observation,
  inflight
} from './evidence.ts'
import { holder } from './holder.ts'
import { entering } from './entry.ts'
import { hiding } from './hidden.ts'
import { haunting, lettingGo, owning, sealing, timing, vanishing } from './members.ts'
import { aService, holding, podFact, sliceFact } from './objects.ts'
import { pod, terminating } from './pod.ts'
import { asking, endpoint, slice } from './service.ts'
import { dialling, injecting, refusing, relisting } from './small.ts'
import { expecting, syncing } from './sync.ts'
import { tabling } from './table.ts'
import { identifying, stepping, taking } from './watching.ts'
import { worldOf } from './world.ts'

/**
 * The subject of each file of `test/cases`: computes the value to compare with `expect` from `given` and `now`. `given` states
 * only the differences from a healthy default, in the words of the types.
 */
export const SUBJECTS = {
  budget,
  drain,
  answer: answering,
  plan: planning,
  successors: succeeding,
  proof: proving,
  sync: syncing,
  podfact: podFact,
  slicefact: sliceFact,
  servicefact: aService,
  holders: holding,
  ghosts: haunting,
  vanished: vanishing,
  seal: sealing,
  entry: entering,
  letgo: lettingGo,
  hidden: hiding,
  behind: timing,
  table: tabling,
  intake: taking,
  nextstep: stepping,
  identity: identifying,
  expected: expecting,
  ownership: owning,
  nodes: (given: { pod: Partial<PodFact>; ports?: readonly number[] }) =>
    nodesOf(pod('web-1', given.pod), given.ports ?? []),
  words: wording,
  dial: dialling,
  refusal: refusing,
  inject: injecting,
  relist: relisting
}

/** What durations mean, in ms, and annotations without their prefix. */
function wording(given: {
  durations?: readonly string[]
  annotations?: Readonly<Record<string, string>>
}): unknown {
  if (given.durations) return given.durations.map(text => parseDuration(text) ?? 'none')
  return JSON.parse(JSON.stringify(readOptions(asking(given.annotations ?? {}))))
}

type Facts = Partial<Omit<Seen, 'pod' | 'verdict'>> & {
  readonly pod?: Partial<PodFact>
  readonly verdict?: Partial<Verdict>
}

/** A verdict, of which only the differences are stated: `{ kind: proven, grade: observed }`. */
const verdictOf = (differs: Partial<Verdict> | undefined): Verdict | undefined => {
  if (differs === undefined) return undefined
  return differs.kind === 'proven' ? proven(differs) : waiting(differs as object)
}

/** In a case, `listed: null` stands for `undefined`: there is no inventory yet. */
const seenOf = ({ pod: differs, verdict, listed = true, ...rest }: Facts, name = 'web-1'): Seen =>
  seen(pod(name, differs), { ...rest, listed: listed ?? undefined, verdict: verdictOf(verdict) })

function budget(given: {
  pod?: Partial<PodFact>
  since?: number
  settings?: Partial<DrainSettings> & { needMs?: number }
}) {
  const settings = { ...DRAIN_SETTINGS, ...given.settings }
  const fact = pod('web-1', given.pod)
  return { deadline: deadlineOf(fact, given.since ?? 0, settings), problems: budgetProblems(fact, settings) }
}

/** Runs rounds in sequence, each at its own `now`. Returns one line for each round. */
function drain(given: { rounds: readonly (Facts & { now: number })[]; settings?: Partial<DrainSettings> }) {
  const settings = { ...DRAIN_SETTINGS, ...given.settings }
  let current: Drain | undefined
  return given.rounds.map(({ now, ...facts }) => {
    const round = seenOf(facts)
    current = current ? step(current, round, now, settings) : begin(round, now, settings)
    if (!current) return 'none'
    const why = current.phase === 'undone' ? `: ${current.why}` : ` until ${current.deadline}`
    const ports = current.isWhole ? '' : ` of ${current.ports.join()}`
    return `${current.phase}${ports}${why} (${Object.keys(current.witnesses).sort().join(', ')})`
  })
}

type ServiceDraft = Readonly<Record<string, { ports?: Readonly<Record<string, number>>; ready?: boolean }>>

/**
 * The successors of the pod `old`. `services` lists pods by name, each with its ports by name. Other pods are Ready unless
 * `given` states otherwise.
 */
function succeeding(given: {
  readonly old?: Partial<PodFact>
  readonly pods?: Readonly<Record<string, Partial<PodFact>>>
  readonly services: Readonly<Record<string, ServiceDraft>>
  readonly holders?: readonly Partial<Holder>[]
  /** Pods that drain because of another sign than their deletion. */
  readonly ending?: readonly string[]
}) {
  const owner = 'ReplicaSet/web-1a2b'
  const alone = given.old?.owner === null && { owner: undefined }
  const old = pod('old', { owner, ips: ['10.0.0.1'], ...terminating(0), ...given.old, ...alone })
  const others = Object.entries(given.pods ?? {}).map(([name, differs], i) => {
    const alone = differs.owner === null && { owner: undefined }
    return [name, pod(name, { owner, ips: [`10.0.0.${i + 2}`], ...differs, ...alone })] as const
  })
  const all = new Map([['old', old], ...others])
  const slices = Object.entries(given.services).flatMap(([service, drafts]) =>
    Object.entries(drafts).flatMap(([name, { ports = { http: 8080 }, ready = true }]) => {
      const fact = all.get(name)
      if (!fact) throw new Error(`no such pod: ${name}`)
      return fact.ips.map(address => {
        const isOld = name === 'old'
        const one = endpoint(fact.uid, { address, ready: ready && !isOld, terminating: isOld })
        return slice(`${service}-${name}-${address}`, [one], {
          namespace: fact.namespace,
          service,
          family: address.includes(':') ? 'IPv6' : 'IPv4',
          ports: Object.entries(ports).map(([portName, port]) => ({ name: portName, port }))
        })
      })
    })
  )
  const drains = drainsOf(
    [old, ...(given.ending ?? []).flatMap(name => all.get(name) ?? [])].map(fact =>
      drainOf(seen({ ...fact, ...terminating(0) }))
    )
  )
  const byUid = new Map([...all.values()].map(fact => [fact.uid, fact]))
  const isWhole = areWhole((given.holders ?? []).map(differs => holder('web', ['10.0.0.1:8080'], differs)))
  const standing = servicePortsOf(
    old,
    slices.filter(({ namespace }) => namespace === old.namespace)
  )
  if (groupOf(old, standing, isWhole) === '') return 'none'
  const candidates = candidatesOf(
    old,
    standing,
    isWhole,
    service => slices.filter(slice => slice.service === service && slice.namespace === old.namespace),
    uid => byUid.get(uid)
  )
  const world = worldOf([], all.values())
  const found = nodesOfAll(chosenOf(old, candidates, ({ uid }) => mayTakeOver(world, drains, byUid.get(uid))))
  const sorted = Object.entries(found).map(([port, nodes]) => [port, [...nodes].sort()])
  return sorted.length === 0 ? 'none' : Object.fromEntries(sorted)
}

function answering(
  given: Facts & {
    hook?: Partial<Hook>
    began?: number | null
    /** A hook began the drain, and its container was restarted. */
    undone?: true
    /** A gateway without the seal that the proof rested on. */
    unsealed?: string
    settings?: Partial<DrainSettings>
  },
  now: number
) {
  const { hook: differs, began = 0, undone = false, settings: other, ...facts } = given
  const settings = { ...DRAIN_SETTINGS, ...other }
  const fact = seenOf(undone ? { ...facts, pod: { ...facts.pod, runs: 'app=2' } } : facts)
  const before = undone ? { ...fact, pod: { ...fact.pod, runs: 'app=1' } } : fact
  const drain = began === null ? undefined : begin(before, began, settings)
  const later = drain && step(drain, fact, now, settings)
  const told = answer(hook(fact.pod, differs), later, fact, now, settings, given.unsealed)
  if (told.kind === 'wait') return { wait: told.until, why: told.why }
  const { ack } = told
  const { status, result, evidence, elapsedMs, why } = ack
  const more = ack.status === 200 ? ack.noReplacement && { noReplacement: true } : { change: ack.change }
  return { status, result, evidence, elapsedMs, why, ...more }
}

function planning(
  given: {
    holders: Record<string, Partial<Omit<Holder, 'nodes'>> & { nodes: readonly string[] }>
    pods?: Record<string, Facts & { began?: number; ports?: readonly number[] }>
    /** Addresses of pods that are gone. */
    ended?: readonly string[]
    settings?: Partial<Omit<PlanSettings, 'unsure'>> & { unsure?: readonly PodUid[] }
  },
  _now: number
) {
  const pods = Object.entries(given.pods ?? {}).map(([name, { began = 0, ports = [], ...facts }]) => {
    const fact = seenOf(facts, name)
    return { fact, ports, drain: begin(fact, began, DRAIN_SETTINGS) }
  })
  const holders = Object.entries(given.holders).map(([id, { nodes, ...more }]) => holder(id, nodes, more))
  const ports = new Map(pods.map(({ fact, ports }) => [fact.pod.uid, ports]))
  const exist = pods.filter(({ fact }) => !fact.gone).map(({ fact }) => fact.pod)
  const world = worldOf(
    holders,
    exist,
    ({ uid }) => ports.get(uid) ?? [],
    host => given.ended?.includes(host) ?? false
  )
  const drains = drainsOf(pods.flatMap(({ drain }) => (drain ? [drain] : [])))
  const settings = { dryRun: false, ...given.settings, unsure: new Set(given.settings?.unsure) }
  const { changes, kept } = plan(world, drains, settings)
  return {
    remove: changes.map(change => `${change.holder.key}: ${change.nodes.map(node => node.key).join(' ')}`),
    kept: kept.map(({ holder, node, why }) => `${holder}: ${node} (${why})`)
  }
}

/** In a case only the kinds that are not 0 are written. */
type BarrierFacts = Partial<Omit<BarrierReading, 'inflight'>> & {
  inflight?: { requests: number; long?: Partial<LongLived> }
}

const barrierOf = ({ inflight: counts, ...facts }: BarrierFacts): BarrierReading =>
  barrier({ ...facts, ...(counts && { inflight: inflight(counts.requests, counts.long) }) })

function proving(
  given: Partial<Omit<Evidence, 'gateways' | 'holders'>> & {
    gateways?: Record<
      string,
      {
        barrier?: BarrierFacts
        observation?: object
        gateway?: object
        doubt?: string
        unsealed?: string
        silent?: boolean
      }
    >
    holders?: Record<string, object>
    pod?: Partial<PodFact>
    since?: number
    witnesses?: Drain['witnesses']
    settings?: Partial<ProofSettings>
  },
  now: number
) {
  const {
    gateways = {},
    holders = { 'upstreams/web': {} },
    pod: differs,
    since = 0,
    witnesses = { deletion: since },
    settings,
    ...rest
  } = given
  const by = { ...PROOF_SETTINGS, ...settings }
  const verdict = (by.by === 'observed' ? proveByReads : prove)(
    evidence({
      ...rest,
      holders: Object.entries(holders).map(([key, differs]) => holderEvidence(key, differs)),
      gateways: Object.entries(gateways).map(
        ([name, { barrier: b, observation: o, gateway = {}, doubt = '', unsealed = '', silent = false }]) =>
          gatewayEvidence(name, {
            gateway,
            barrier: b && barrierOf(b),
            observation: o && observation(o),
            doubt,
            unsealed,
            silent
          })
      )
    }),
    { since, pod: pod('web-1', differs), witnesses },
    now,
    by
  )
  const { kind, why } = verdict
  const longLived = verdict.longLived ? { longLived: longLivedWords(verdict.longLived) } : {}
  const reports = verdict.gateways.map(
    g => `${g.name}: ${[g.grade ?? 'none', g.why].filter(Boolean).join(', ')}`
  )
  const shown = reports.length > 0 ? { gateways: reports } : {}
  if (verdict.kind === 'proven') {
    const forced = verdict.forced ? { forced: true } : {}
    const { grade, places = 'not known' } = verdict
    return { kind, grade, places, ...forced, ...longLived, why, ...shown }
  }
  const { until, lastEndpoint, barred, vain, change } = verdict
  return {
    kind,
    ...(until !== undefined && { until }),
    ...(lastEndpoint && { lastEndpoint }),
    ...(barred && { barred }),
    ...(vain && { vain, ...(change && { change }) }),
    why,
    ...shown
  }
}
