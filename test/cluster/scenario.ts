import { constants } from 'node:os'
import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { NAMESPACE, type WorkloadOptions } from './objects/workload.ts'
import { inWords, underLoad, type Action, type Observed } from './rollout.ts'
import { world } from './setup.ts'
import type { Together } from './together.ts'
import type { StartOwner, Workload, WorkloadLoad } from './world.ts'

/** kubectl in the workloads' namespace. */
export const kube = (...args: readonly string[]) => world().kube(`--namespace=${NAMESPACE}`, ...args)

export const serving = (web: Workload) => web.pods().filter(({ isReady, endingAt }) => isReady && !endingAt)

/** Returns the name of a pod that serves. */
export const oneOf = (web: Workload): string => serving(web)[0]?.name ?? ''

/** `kubectl scale`; resolves when that many pods serve. */
export async function scale(web: Workload, replicas: number): Promise<void> {
  await kube('scale', web.target, `--replicas=${replicas}`)
  await eventually(`${replicas} serve`, () => serving(web).length === replicas)
}

export const begin = (web: Workload) => kube('rollout', 'restart', web.target)
/** Resolves when the new pods are available. */
export const finish = (web: Workload) => kube('rollout', 'status', web.target, '--timeout=120s')

/** A rolling update, with `what` in the middle of it. */
export async function restart(web: Workload, what: () => Promise<unknown> = async () => {}): Promise<void> {
  await begin(web)
  await what()
  await finish(web)
}

/** A workload, and the action on it under load. */
export interface Scenario extends Pick<Action, 'ends' | 'listed'> {
  readonly name: string
  readonly options?: Partial<WorkloadOptions>
  readonly act: (web: Workload) => Promise<void>
  readonly load?: WorkloadLoad
  /** Starts the owner of the workload's upstream; default: the sandbox's owner. */
  readonly own?: StartOwner
}

/**
 * Plans a scenario. The returned function runs it, prints the observations and returns them. By default the app drops
 * accepted requests at SIGTERM, and takes 100 ms for each answer.
 */
export function observing(side: Together, scenario: Scenario): () => Promise<Observed> {
  const seen = side.plan(() => observe(scenario))
  return async () => {
    const observed = await seen()
    console.log(`      ${inWords(observed)}`)
    return observed
  }
}

async function observe(scenario: Scenario): Promise<Observed> {
  const { name, options, ends, act, load = { answerMs: 100 }, listed, own } = scenario
  const web = await world().run({ name, arm: 'apisix-drain', replicas: 3, atTerm: 'exit', ...options }, own)
  try {
    const action = { ends, act: () => act(web), ...(listed !== undefined && { listed }) }
    return await underLoad(world(), web, action, load)
  } finally {
    await web.remove()
  }
}

export const lostNothing = ({ load }: Pick<Observed, 'load'>) =>
  expect(load.failed, JSON.stringify(load.failures.slice(0, 3))).to.equal(0)

/** Expects that `count` pods ended, and that the kubelet killed none. It gives a program two seconds after a hook that took the whole grace. */
export function endedInTime({ ended }: Pick<Observed, 'ended'>, count: number): void {
  expect(ended.map(({ name }) => name)).to.have.length(count)
  for (const { name, codes } of ended)
    expect([...codes.values()], name).to.not.be.empty.and.not.include(128 + constants.signals.SIGKILL)
}

/** The only proved answer. */
export const PROVED = 'drained/barrier'

/** Expects only `outcomes` as answers, and at least one answer; without `outcomes`, expects no answer. */
export function answered({ answers }: Pick<Observed, 'answers'>, ...outcomes: readonly string[]): void {
  const given = Object.keys(answers)
  expect(outcomes, JSON.stringify(answers)).to.include.members(given)
  expect(given.length > 0, 'anything was answered').to.equal(outcomes.length > 0)
}
