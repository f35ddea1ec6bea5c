import * as fc from 'fast-check'
import { FAULTS, type FaultName } from './faults.ts'

export const MODES = [
  'observed',
  'barrier',
  'standalone',
  'standalone, barrier',
  'discovery',
  'discovery, barrier'
] as const
export type Mode = (typeof MODES)[number]

/** When something breaks, relative to the life of the ending pods. */
export const MOMENTS = [
  'before the deletion',
  'between deletion and hook',
  'while the hook is held',
  'after the ack',
  'when the replacement arrives'
] as const
export type Moment = (typeof MOMENTS)[number]

export const AGENTS = ['one', 'two', 'two, one leads'] as const

/**
 * The address that a pod of another namespace gets: that of an ended pod, or of a successor. The owner never lists that successor, so only
 * the plugin sends requests there.
 */
export const STRANGERS = ['none', 'stranger: at an ended pod', 'stranger: at a successor'] as const

/** Faults of agents' own ways to the API server. They last long. */
const OF_ONE_WAY: readonly FaultName[] = ['agent: blind', 'agent: lags', 'agent: all blind']

export const isOfOneWay = (fault: FaultName): boolean => OF_ONE_WAY.includes(fault)

/** Whether agents need ways of their own to the API server. */
export const needsWays = ({ breaks }: Pick<Scenario, 'breaks'>): boolean =>
  breaks.some(({ fault }) => isOfOneWay(fault))

/** Faults that keep a watch from reporting an end. */
const DEAF: readonly FaultName[] = [
  'API server: silent watches',
  'API server: half-open',
  'agent: paused',
  ...OF_ONE_WAY
]

/** Faults that leave a time without an agent that sees. It may know nothing of a pod that goes meanwhile. */
const ENDS: ReadonlySet<FaultName> = new Set(['agent: killed', 'agent: replaced at once', 'agent: all blind'])

/** Whether a pod can go while no agent sees it. Its node then stays until its owner writes. */
export const leavesGhosts = ({ breaks }: Pick<Scenario, 'breaks'>): boolean =>
  breaks.some(({ fault }) => ENDS.has(fault))

/** Whether one of these faults is among the breakages. */
export const has = ({ breaks }: Pick<Scenario, 'breaks'>, ...names: readonly FaultName[]): boolean =>
  breaks.some(({ fault }) => names.includes(fault))

/** With only these faults the gateways always answer. So only a gateway's own 0 in flight, or the deadline, releases a hook. */
const ASKABLE: ReadonlySet<FaultName> = new Set([
  'gateway: reloads',
  'gateway: one worker killed',
  'gateway: clock jumps ahead',
  'gateway: clock jumps back',
  'agent: paused',
  'Admin API: slow listings',
  'EndpointSlices: forged',
  'owner: lists a backup',
  'owner: writes in between'
])

/** Faults that make no request fail. */
const UNFELT: ReadonlySet<FaultName> = new Set([
  'EndpointSlices: forged',
  'pods: short grace',
  'owner: lists a backup',
  'gateway: all roll',
  'gateway: clock jumps ahead',
  'gateway: clock jumps back'
])

/** Without the plugin a gateway that joins is observed for 20 ms only, which is a sample of its workers. */
export const isUnfelt = ({ breaks, mode }: Pick<Scenario, 'breaks' | 'mode'>): boolean =>
  breaks.every(({ fault }) => UNFELT.has(fault)) &&
  (mode.endsWith('barrier') || !has({ breaks }, 'gateway: all roll'))

/** Whether every hook can be answered, and no fault makes a drain longer. */
export const isUnhurt = ({
  mode,
  breaks,
  ownPlace
}: Pick<Scenario, 'mode' | 'breaks' | 'ownPlace'>): boolean =>
  mode.endsWith('barrier') &&
  ownPlace === 'none' &&
  breaks.every(({ fault }) => fault === 'gateway: one worker killed' || UNFELT.has(fault)) &&
  !has({ breaks }, 'pods: short grace', 'gateway: all roll')

export const isCounted = ({ mode, breaks }: Pick<Scenario, 'mode' | 'breaks'>): boolean =>
  mode.endsWith('barrier') && breaks.every(({ fault }) => ASKABLE.has(fault))

/** One thing that breaks. */
export interface Breakage {
  readonly fault: FaultName
  readonly moment: Moment
  /** How long the fault lasts at most, in ms: some faults end by themselves. */
  readonly forMs: number
  /** Which gateway, worker or agent, if there are several. */
  readonly which: number
}

/** A run as plain data: the same scenario breaks the same things at the same moments. */
export interface Scenario {
  readonly mode: Mode
  readonly agents: (typeof AGENTS)[number]
  readonly form: 'map' | 'array'
  /** The numbers of pods that end and that stay. If no pod stays, only the replacement can serve. */
  readonly ending: number
  readonly staying: number
  /** Requests are in flight to the ending pods, and are answered while their hooks are held. */
  readonly inFlight: boolean
  /** The replacement has the address of a pod that is gone, and comes after that pod. Otherwise it comes while hooks are held. */
  readonly sameAddress: boolean
  /** This address is listed again while a write for the old pod may still be on its way: a known gap (docs/lab/faults.md). */
  readonly addressAtOnce: boolean
  /** Another writer adds a pod by hand while the others end. */
  readonly ownerAdds: boolean
  readonly stranger: (typeof STRANGERS)[number]
  /** The time from the calls of the hooks to that addition, in ms: before, between or after the agent's read and write. */
  readonly addsAfterMs: number
  readonly breaks: readonly Breakage[]
  /** All pods are of one such workload, and the first one that ends also has a place of its own, where no other pod may answer. */
  readonly ownPlace: 'none' | 'StatefulSet' | 'DaemonSet'
}

/** Returns random scenarios. `only`: faults, modes or moments, by name or by the part before the colon; empty: any scenario. */
export function scenarios(only: readonly string[] = [], knownGaps = false): fc.Arbitrary<Scenario> {
  const chosen = <T extends string>(names: readonly T[]): readonly T[] => {
    const found = names.filter(name => only.some(part => name === part || name.startsWith(`${part}:`)))
    return found.length > 0 ? found : names
  }
  const names = chosen(Object.keys(FAULTS) as FaultName[])
  const any = fc.record({
    mode: fc.constantFrom(...chosen(MODES)),
    agents: fc.constantFrom(...AGENTS),
    form: fc.constantFrom('map', 'array'),
    ending: fc.constantFrom(1, 2, 3),
    staying: fc.constantFrom(1, 2, 0),
    inFlight: fc.boolean(),
    sameAddress: fc.boolean(),
    addressAtOnce: fc.constant(knownGaps),
    ownerAdds: fc.boolean(),
    stranger: fc.constantFrom(...chosen(STRANGERS)),
    breaks: fc.array(
      fc.record({
        fault: fc.constantFrom(...names),
        moment: fc.constantFrom(...chosen(MOMENTS)),
        forMs: fc.constantFrom(200, 500, 1000, 1800),
        which: fc.constantFrom(0, 1, 2, 3)
      }),
      // Some scenarios have no fault, and then nothing may fail.
      { minLength: only.length > 0 ? 1 : 0, maxLength: 3, size: 'max' }
    ),
    addsAfterMs: fc.constantFrom(0, 150, 400),
    ownPlace: fc.constantFrom('none', 'none', 'StatefulSet', 'none', 'none', 'DaemonSet')
  })
  // Five minutes, the time of such a run, only if such a fault is asked for by its name.
  const longestMs = only.some(name => isOfOneWay(name as FaultName)) ? 300_000 : 60_000
  const possible = any.map(scenario => asFarAsPossible(scenario, longestMs))
  return knownGaps ? possible : possible.map(withoutKnownGaps)
}

/** Changes what does not fit together. */
function asFarAsPossible(scenario: Scenario, longestMs: number): Scenario {
  const { mode, breaks } = scenario
  // An agent must be there all the while, and know every gateway.
  const hasBackup = has(scenario, 'owner: lists a backup')
  const isWatched =
    !leavesGhosts(scenario) && !hasBackup && !has(scenario, 'gateway: second behind one address')
  const stranger = isWatched ? scenario.stranger : 'none'
  const first = breaks.find(({ fault }) => isOfOneWay(fault))
  const roll = breaks.find(({ fault }) => fault === 'gateway: all roll')
  return {
    ...scenario,
    stranger,
    ...(stranger !== 'none' && { sameAddress: false, ownerAdds: false, ownPlace: 'none' }),
    // Only the plugin knows successors, and no agent may write the list.
    ...(stranger === 'stranger: at a successor' && {
      mode: mode.startsWith('standalone') ? 'standalone, barrier' : 'discovery, barrier',
      staying: 0
    }),
    ...(needsWays(scenario) && scenario.agents === 'one' && { agents: 'two' }),
    // Discovery and maps of nodes have no priorities.
    ...(hasBackup && {
      form: 'array' as const,
      mode: mode.replace('discovery', 'standalone') as Mode
    }),
    // One agent sees, or none.
    breaks: breaks.flatMap(one => {
      if (one.fault === 'gateway: all roll' && one !== roll) return []
      if (!isOfOneWay(one.fault)) return [one]
      const forMs = one.forMs <= 1000 ? 10_000 : one.which < 3 ? 60_000 : longestMs
      return one === first ? [{ ...one, forMs }] : []
    })
  }
}

/** Changes a scenario that is a known gap (docs/lab/faults.md) into one that is not. */
function withoutKnownGaps(scenario: Scenario): Scenario {
  const breaks = (part: string) => scenario.breaks.some(({ fault }) => fault.startsWith(part))
  return {
    ...scenario,
    // Each of two agents may know only the ends of its own hooks. Then each may keep the node that the other agent removes, and
    // if no pod stays, the holder is empty for a moment. The same can happen if an agent writes for a late leader, or if two
    // agents stop relying on the barrier at different moments.
    ...((breaks('API server:') ||
      breaks('agent: paused') ||
      needsWays(scenario) ||
      breaks('gateway: second behind one address')) &&
      scenario.stranger !== 'stranger: at a successor' &&
      scenario.agents !== 'one' &&
      scenario.staying === 0 && { staying: 1 }),
    ...(DEAF.some(breaks) && scenario.agents === 'two' && { agents: 'two, one leads' })
  }
}

export const describeScenario = ({ breaks, ...others }: Scenario): string =>
  [
    ...Object.entries(others).map(([name, value]) => `${name} ${value}`),
    ...breaks.map(({ fault, moment, forMs, which }) => `${fault} ${moment} (${forMs} ms, ${which})`)
  ].join('; ')
