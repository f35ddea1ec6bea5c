import type { Store } from '../store.ts'
import { startDeployments } from './deployment.ts'
import { startEndpointSlices, type EndpointSliceOptions } from './endpointslice.ts'
import { startGarbageCollector } from './garbage.ts'
import { startReplicaSets } from './replicaset.ts'
import { startScheduler } from './scheduler.ts'

export interface ControllerOptions {
  /** Names of the hosts for pods; default `host-1`. */
  readonly hosts?: readonly string[]
  readonly endpointSlices?: EndpointSliceOptions
}

/** Starts all controllers on the store: deployments, replica sets, endpoint slices, scheduler, garbage. */
export function startControllers(store: Store, options: ControllerOptions = {}): { stop(): void } {
  const stops = [
    startScheduler(store, options.hosts),
    startReplicaSets(store),
    startDeployments(store),
    startEndpointSlices(store, options.endpointSlices),
    startGarbageCollector(store)
  ]
  return {
    stop() {
      for (const stop of stops) stop()
    }
  }
}
