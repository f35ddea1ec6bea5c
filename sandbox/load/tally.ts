import type { LoadCounts, LoadFailure, LoadResult, RequestKind } from './options.ts'
import type { Outcome } from './send.ts'

/** The number of failures that are kept with their details; the others are only counted. */
const KEPT = 50

/** Counts outcomes. Every request is counted once, when it has ended. */
export function createTally() {
  const byKind = { status: 0, reset: 0, timeout: 0, truncated: 0 }
  const none = () => ({ requests: 0, failed: 0 })
  const byRequest = {
    get: none(),
    'get-new-connection': none(),
    post: none(),
    slow: none(),
    upload: none(),
    websocket: none()
  }
  const failures: LoadFailure[] = []
  let sent = 0
  let requests = 0
  let failed = 0

  const counts = (): LoadCounts => ({ requests, failed, byKind, byRequest, pending: sent - requests })
  return {
    counts,
    started: () => void sent++,
    ended(request: RequestKind, outcome: Outcome, sentAt: number, at: number) {
      requests++
      byRequest[request].requests++
      if (outcome.ok) return
      failed++
      byRequest[request].failed++
      byKind[outcome.kind]++
      const { kind, status, pod, detail } = outcome
      if (failures.length < KEPT) failures.push({ sentAt, at, request, kind, status, pod, detail })
    },
    result: (): LoadResult => ({ ...counts(), failures })
  }
}
