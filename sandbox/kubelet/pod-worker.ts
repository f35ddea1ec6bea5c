import type { AppMessage } from '../app/report.ts'
import { now } from '../now.ts'
import { startContainer, type Container, type Exit, type Image } from './container.ts'
import { runHook } from './hook.ts'
import { containerEnv, graceSeconds, type ContainerSpec, type Pod } from './pod.ts'
import { newRecord, type PodRecord } from './record.ts'
import { podStatus, type ContainerState } from './status.ts'
import type { PodStore } from './pod-store.ts'
import { endContainer } from './terminate.ts'

export interface PodWorker {
  readonly record: PodRecord
  /** Ends the pod: hooks, TERM, KILL, then its object is deleted. Runs once; later calls return the first call's promise. */
  end(pod: Pod): Promise<void>
  /** For a pod whose object is gone already: starts no hook and ends a running one; TERM at once, KILL 2 s later. */
  force(): void
  /** A failed liveness probe: hook, TERM, and a restart of the container. The object is not deleted. */
  restart(container?: string): Promise<void>
  pids(): readonly number[]
  /** KILL at once. Resolves when no process is left. */
  kill(): Promise<void>
}

/** One container of the pod and its current run. */
interface Slot {
  readonly spec: ContainerSpec
  readonly env: Readonly<Record<string, string>>
  run: Container
  state: ContainerState
  /** Set while the container is ended or restarted on purpose: its exit is then no crash. */
  ending: boolean
}

/** How long a crashed container stays down (ms). The first steps of a real back-off are longer. */
const RESTART_MS = 1000

interface PodWorkerDeps {
  readonly store: PodStore
  readonly images: Readonly<Record<string, Image>>
  readonly ip: string
  /** Called when a pod has changed in a way that a caller of `until` may wait for. */
  readonly changed: () => void
}

/** Runs one pod from the start of its containers to the deletion of its object. */
export function startPod(pod: Pod, { store, images, ip, changed }: PodWorkerDeps): PodWorker {
  const { namespace = 'default', name, uid } = pod.metadata
  const record = newRecord({ uid, namespace, name, ip, startedAt: now() })
  const forced = new AbortController()
  let ended: Promise<void> | undefined
  let killed = false

  const publish = (phase: 'Running' | 'Succeeded' | 'Failed' = 'Running') => {
    const states = slots.map(({ state }) => state)
    store.patchStatus(pod, podStatus(pod, ip, phase, states, Date.now()))
    changed()
  }

  const heard = (message: AppMessage) => {
    if (message.type !== 'arrivals') return
    record.arrivals.push(...message.list)
    record.answeredAt = message.answeredAt
  }

  const launch = (spec: ContainerSpec, env: Readonly<Record<string, string>>): Container => {
    const own = { command: [...(spec.command ?? []), ...(spec.args ?? [])], ready: 'start' as const }
    const image = spec.command ? own : (images[spec.image ?? ''] ?? own)
    return startContainer({ image, env, onMessage: heard })
  }

  const slots = pod.spec.containers.map((spec): Slot => {
    const env = containerEnv(pod, spec, ip)
    const state = { name: spec.name, image: spec.image ?? '', ready: false, restartCount: 0 }
    const run = launch(spec, env)
    return { spec, env, run, state: { ...state, startedAt: Date.now(), exitCode: undefined }, ending: false }
  })

  const followReady = async (slot: Slot, run: Container) => {
    await run.ready
    if (run !== slot.run || slot.ending || run.dead.aborted) return
    slot.state = { ...slot.state, ready: true }
    if (slots.every(({ state }) => state.ready)) record.readyAt ??= now()
    publish()
  }

  const followExit = async (slot: Slot, run: Container) => {
    const { at, code, signal } = await run.exited
    record.exits.push({ container: slot.spec.name, at, code, signal })
    if (slot.ending || killed || ended) return
    slot.state = { ...slot.state, ready: false }
    publish()
    setTimeout(() => relaunch(slot), RESTART_MS).unref()
  }

  const follow = (slot: Slot) => {
    void followReady(slot, slot.run)
    void followExit(slot, slot.run)
  }

  const relaunch = (slot: Slot) => {
    if (killed || ended || forced.signal.aborted) return
    slot.run = launch(slot.spec, slot.env)
    const { restartCount } = slot.state
    slot.state = { ...slot.state, restartCount: restartCount + 1, startedAt: Date.now() }
    slot.ending = false
    record.restarts++
    follow(slot)
    publish()
  }

  const endSlot = (slot: Slot, grace: number): Promise<Exit> => {
    slot.ending = true
    const { spec, env, run } = slot
    const handler = spec.lifecycle?.preStop
    const hook = () => runHook(handler ?? {}, { spec, env, ip, signal: run.dead })
    return endContainer({
      container: run,
      hook: handler && !run.dead.aborted ? hook : undefined,
      graceSeconds: grace,
      forced: forced.signal,
      onHookStart() {
        record.hookStartedAt ??= now()
        changed()
      },
      onHookEnd(done) {
        record.hooks.push(done)
        if (!done.ok) store.event(pod, 'Warning', 'FailedPreStopHook', `PreStopHook failed: ${done.output}`)
        changed()
      },
      onTerm: () => (record.termAt ??= now())
    })
  }

  const end = async (latest: Pod) => {
    record.deletionSeenAt = now()
    store.event(pod, 'Normal', 'Killing', `Stopping container ${pod.spec.containers[0]?.name ?? ''}`)
    const exits = await Promise.all(slots.map(slot => endSlot(slot, graceSeconds(latest))))
    if (killed) return
    slots.forEach((slot, i) => {
      const code = exits[i]?.code ?? SIGNALLED
      slot.state = { ...slot.state, ready: false, exitCode: code }
    })
    publish(exits.every(({ code }) => code === 0) ? 'Succeeded' : 'Failed')
    store.remove(pod)
    record.goneAt = now()
    changed()
  }

  slots.forEach(follow)
  publish()

  return {
    record,
    end: latest => (ended ??= end(latest)),
    force: () => forced.abort(),
    pids: () => slots.flatMap(({ run }) => (run.pid === undefined || run.dead.aborted ? [] : [run.pid])),
    async restart(container) {
      const slot = slots.find(({ spec }) => spec.name === (container ?? slots[0]?.spec.name))
      if (!slot) throw new Error(`pod ${name} has no container ${container}`)
      await endSlot(slot, pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS)
      relaunch(slot)
      await slot.run.ready
    },
    async kill() {
      killed = true
      await Promise.all(slots.map(({ run }) => (run.kill('SIGKILL'), run.exited)))
      await ended
    }
  }
}

const DEFAULT_GRACE_SECONDS = 30
/** 128 + SIGKILL. */
const SIGNALLED = 137
