import { inject, type InjectSettings } from '../../agent/hook/inject/inject.ts'
import { isDialable } from '../../agent/kubernetes/facts/gateway-store.ts'
import {
  ApiError,
  isExpired,
  isFromTheFuture,
  isUnsupported,
  parseRetryAfter
} from '../../agent/kubernetes/transport/objects.ts'
import { normaliseAddress } from '../../agent/report/page/guard.ts'
import { createRelister } from '../../agent/round/schedule.ts'
import type { Drain } from '../../agent/rules/drain/drain.ts'
import { drainOf, seen } from './drain.ts'
import { pod, terminating } from './pod.ts'

/** How each address is written, and whether a gateway may be called there: from everywhere, only if the whole cluster is on this machine, or never. */
export const dialling = (given: { addresses: readonly string[] }) =>
  Object.fromEntries(
    given.addresses.map(address => {
      const called = isDialable(address, false)
        ? 'always'
        : isDialable(address, true)
          ? 'on this machine'
          : 'never'
      const normal = normaliseAddress(address)
      return [address, normal === address ? called : `${called}, as ${normal}`]
    })
  )

/** What a refusal of the API server means, and how long it asks to wait, at 10:00:00. */
export function refusing(given: { status?: number; body?: object; retryAfter?: string }) {
  const error = new ApiError('GET', given.status ?? 503, given.body)
  const kinds = {
    expired: isExpired(error),
    unsupported: isUnsupported(error),
    future: isFromTheFuture(error)
  }
  const wait = parseRetryAfter(given.retryAfter, Date.parse('2026-11-21T10:00:00Z')) ?? 'as usual'
  return [...Object.entries(kinds).flatMap(([kind, is]) => (is ? [kind] : [])), `wait: ${wait}`].join(', ')
}

const HELPER: Pick<InjectSettings, 'hook' | 'initContainer' | 'volumes'> = {
  hook: 'helper',
  initContainer: { name: 'apisix-drain-hook', image: 'hook' },
  volumes: [
    {
      volume: { name: 'apisix-drain-hook', emptyDir: {} },
      mount: { name: 'apisix-drain-hook', mountPath: '/apisix-drain' }
    }
  ]
}

/** The places that the webhook adds to in a pod, and the fields by which it names the pod. */
export function injecting(given: { spec: object; hook?: 'curl' }) {
  const files = { host: 'apisix-drain.apisix.svc', certificateFile: 'crt', keyFile: 'key' }
  const own: typeof HELPER = given.hook ? { hook: given.hook, volumes: [] } : HELPER
  const settings = { ...files, url: 'http://apisix-drain.apisix:8080/v1/prestop', ...own }
  return inject({ spec: given.spec }, settings).operations.map(({ path, value }) => {
    const { name, valueFrom } = value as { name?: string; valueFrom?: { fieldRef: { fieldPath: string } } }
    return valueFrom ? `${path}: ${name} is ${valueFrom.fieldRef.fieldPath}` : path
  })
}

/** When the holders are listed, and when the relister asks to be called again. A drain by its start, or with the time at which its pod was gone. */
export function relisting(given: {
  readAt?: number
  rounds: readonly { now: number; drains?: readonly { since: number; gone?: number }[] }[]
}) {
  const state = { now: 0, readAt: given.readAt }
  const listings: number[] = []
  const refresh = async () => {
    listings.push(state.now)
    state.readAt = state.now
  }
  const relister = createRelister({ inventory: { readAt: () => state.readAt, refresh } } as never, 2000)
  const next = given.rounds.map(({ now, drains = [] }) => {
    state.now = now
    const all = drains.map(({ since, gone }): Drain => {
      const drain = drainOf(seen(pod(`web-${since}`, terminating(since))), since)
      return gone === undefined ? drain : ({ ...drain, phase: 'gone', at: gone } as Drain)
    })
    return relister.relist(all, now) ?? 'never'
  })
  return { listings, next }
}
