import type { Store } from '../kubernetes/store.ts'
import type { SliceSource } from './slices.ts'

/** The API server stand-in's EndpointSlices, as the owner watches them. */
export const storeSlices = (store: Store): SliceSource => ({
  list: () => store.list('endpointslices'),
  onChange: listener => store.onChange('endpointslices', ({ object }) => listener(object))
})
