import { setTimeout as wait } from 'node:timers/promises'
import { now } from '../now.ts'
import type { Container, Exit } from './container.ts'
import type { HookRecord } from './hook.ts'

interface Ending {
  readonly container: Container
  /** Runs the preStop hook; `undefined` if the container has none. */
  readonly hook: (() => Promise<HookRecord>) | undefined
  readonly graceSeconds: number
  /** Aborted if the pod's object is gone before its process. The remaining grace is then cut to the minimum. */
  readonly forced: AbortSignal
  readonly onHookStart: () => void
  readonly onHookEnd: (record: HookRecord) => void
  readonly onTerm: () => void
}

/** `minimumGracePeriodInSeconds`: the process gets at least this time after TERM, however long the hook took. */
const MINIMUM_SECONDS = 2

/**
 * Ends one container as kubelet's killContainer does (pkg/kubelet/kuberuntime; also measured):
 *
 *   hook ── fails ──────────────► TERM at once, with what is left of the grace
 *    │  └── longer than the grace ► TERM at its end, KILL 2 s later
 *    └──── ok ──────────────────► TERM ── what is left, in whole seconds, 2 at least ──► KILL
 *
 * Grace 0 (forced) runs no hook.
 */
export async function endContainer(ending: Ending): Promise<Exit> {
  const { container, graceSeconds, forced } = ending
  const startedAt = now()
  let hook = Promise.resolve()
  if (ending.hook && graceSeconds > 0 && !forced.aborted) {
    ending.onHookStart()
    hook = ending.hook().then(ending.onHookEnd)
    await firstOf([hook, container.exited, aborted(forced)], graceSeconds * 1000)
  }
  const spent = forced.aborted ? graceSeconds : Math.floor((now() - startedAt) / 1000)
  ending.onTerm()
  container.kill('SIGTERM')
  const left = Math.max(graceSeconds - spent, MINIMUM_SECONDS) * 1000
  const cut = aborted(forced).then(() => wait(MINIMUM_SECONDS * 1000, undefined, { ref: false }))
  await firstOf([container.exited, cut], left)
  container.kill('SIGKILL')
  const exit = await container.exited
  await hook // the hook dies with its container
  return exit
}

/** Resolves after the first of the events, or after `ms`. It clears its timer. */
async function firstOf(events: readonly Promise<unknown>[], ms: number): Promise<void> {
  const timer = new AbortController()
  const timeout = wait(ms, undefined, { signal: timer.signal }).catch(() => {})
  await Promise.race([...events, timeout])
  timer.abort()
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
