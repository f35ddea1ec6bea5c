import type { RequestKind, Traffic } from './options.ts'

/** One request to send. */
export interface Shot {
  readonly kind: RequestKind
  readonly method: 'GET' | 'POST'
  /** How long the app takes to answer, or how long a websocket is open, ms. */
  readonly slowMs: number
  readonly bodyBytes: number
  /** The time in which the body is sent, ms; 0 = at once. */
  readonly bodyMs: number
  readonly newConnection: boolean
}

/**
 * Shares of the requests. POSTs must not be retried, so they show failures that a retry hides. Slow requests are few, because
 * a drain takes as long as the slowest request in flight to its pod. As in real clusters, most pods should have no slow request.
 */
const MIX: readonly (readonly [RequestKind, number])[] = [
  ['get', 88],
  ['get-new-connection', 30],
  ['post', 76],
  ['slow', 1],
  // An upload takes 1.25 s on average, so ten are being sent at any time (at 400 requests a second).
  ['upload', 4],
  ['websocket', 4]
]
const LEFT_OUT: Readonly<Record<Traffic, readonly RequestKind[]>> = {
  'with-websockets': [],
  all: ['websocket'],
  'no-uploads': ['upload', 'websocket'],
  quick: ['slow', 'upload', 'websocket']
}

const between = (random: () => number, low: number, high: number) => Math.round(low + random() * (high - low))

/** Draws the next request. */
export function nextShot(random: () => number, traffic: Traffic): Shot {
  const mix = MIX.filter(([kind]) => !LEFT_OUT[traffic].includes(kind))
  let left = random() * mix.reduce((sum, [, share]) => sum + share, 0)
  const kind = mix.find(([, share]) => (left -= share) < 0)?.[0] ?? 'get'
  const plain = { kind, slowMs: 0, bodyBytes: 0, bodyMs: 0, newConnection: false }
  const shots: Record<RequestKind, () => Shot> = {
    get: () => ({ ...plain, method: 'GET' }),
    'get-new-connection': () => ({ ...plain, method: 'GET', newConnection: true }),
    post: () => ({ ...plain, method: 'POST', bodyBytes: 256 }),
    slow: () => ({ ...plain, method: 'GET', slowMs: between(random, 100, 800) }),
    upload: () => ({ ...plain, method: 'POST', bodyBytes: 32_768, bodyMs: between(random, 500, 2000) }),
    websocket: () => ({ ...plain, method: 'GET', slowMs: between(random, 500, 3000) })
  }
  return shots[kind]()
}
