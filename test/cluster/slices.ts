import type { Slice, SliceSource } from '../../sandbox/owner/slices.ts'
import type { ControlPlane } from './control-plane.ts'
import { watch, type Watched } from './watch.ts'

/** Watches the EndpointSlices of the cluster, for the owner of the upstreams. */
export function watchSlices(controlPlane: ControlPlane): SliceSource & { stop(): Promise<void> } {
  const slices = new Map<string, Slice & Watched>()
  const listeners = new Set<(slice: Slice) => void>()
  const path = '/apis/discovery.k8s.io/v1/endpointslices'
  const watching = watch<Slice & Watched>(controlPlane, path, ({ type, object }) => {
    // The slice of a Service without pods has null instead of empty lists.
    const slice = { ...object, endpoints: object.endpoints ?? [], ports: object.ports ?? [] }
    if (type === 'DELETED') slices.delete(object.metadata.uid)
    else slices.set(object.metadata.uid, slice)
    for (const listener of listeners) listener(slice)
  })
  return {
    list: () => [...slices.values()],
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: () => watching.stop()
  }
}
