/** One request, as it arrived at the pod. */
export interface Arrival {
  /** When its head had been read (ms, `now()` of sandbox/now.ts). */
  readonly at: number
  readonly method: string
}

/** A message of the app to the kubelet stand-in, over IPC. */
export type AppMessage =
  | { readonly type: 'ready'; readonly at: number }
  | { readonly type: 'arrivals'; readonly list: readonly Arrival[]; readonly answeredAt: number }
  | { readonly type: 'ended' }

/** Arrivals are sent in batches: a message per request would cost more than the request. */
const BATCH_MS = 100

/** Collects arrivals and hands them over in batches. Call `flush` before the process ends. */
export function createReport(send: (message: AppMessage) => void) {
  let batch: Arrival[] = []
  let answeredAt = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    if (timer) send({ type: 'arrivals', list: batch, answeredAt })
    timer = undefined
    batch = []
  }
  const later = () => (timer ??= setTimeout(flush, BATCH_MS))
  return {
    flush,
    arrival(arrival: Arrival) {
      batch.push(arrival)
      later()
    },
    /** A request is over, answered or broken off. */
    answered(at: number) {
      answeredAt = at
      later()
    }
  }
}
