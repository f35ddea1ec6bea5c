/** One request, as it arrived at the pod. */
export interface Arrival {
  /** When its head had been read (ms, `now()` of sandbox/now.ts). */
  readonly at: number
  readonly method: string
  /** SIGTERM had been received before it arrived. */
  readonly afterTerm: boolean
}

/** A message of the app to the kubelet stand-in, over IPC. */
export type AppMessage =
  | { readonly type: 'ready'; readonly at: number }
  | { readonly type: 'arrivals'; readonly list: readonly Arrival[] }
  | { readonly type: 'term'; readonly at: number }
  | { readonly type: 'end'; readonly served: number; readonly afterTerm: number }

/** Arrivals are sent in batches: a message per request would cost more than the request. */
const BATCH_MS = 100

/** Collects arrivals and hands them over in batches. Call `flush` before the process ends. */
export function createReport(send: (message: AppMessage) => void) {
  let batch: Arrival[] = []
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (batch.length > 0) send({ type: 'arrivals', list: batch })
    batch = []
  }
  return {
    flush,
    arrival(arrival: Arrival) {
      batch.push(arrival)
      timer ??= setTimeout(flush, BATCH_MS)
    }
  }
}
