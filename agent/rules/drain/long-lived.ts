/**
 * Requests in flight to one pod that do not end by themselves, by kind. No gateway can end them in their own protocol; the pod can, once
 * it has received SIGTERM.
 */
export interface LongLived {
  /** Answered with 101: websockets, and other upgraded protocols. */
  readonly upgraded: number
  /** Server-sent events, by their content type. */
  readonly sse: number
  /** gRPC streams, and answers that have lasted for longer than the plugin's `stream_after`. */
  readonly streams: number
  /** Age of the oldest one in ms; 0: not known yet. */
  readonly oldestMs: number
}

/** How many there are, of all kinds. */
export const countOf = ({ upgraded, sse, streams }: LongLived): number => upgraded + sse + streams

/** The sum over several addresses or gateways, with the age of the oldest. */
export function together(all: readonly LongLived[]): LongLived {
  const sum = (of: (one: LongLived) => number) => all.reduce((total, one) => total + of(one), 0)
  return {
    upgraded: sum(one => one.upgraded),
    sse: sum(one => one.sse),
    streams: sum(one => one.streams),
    oldestMs: Math.max(0, ...all.map(one => one.oldestMs))
  }
}

/** Such as `3 websockets, 1 event stream, 2 streams`. */
export const longLivedWords = ({ upgraded, sse, streams }: LongLived): string =>
  [counted(upgraded, 'websocket'), counted(sse, 'event stream'), counted(streams, 'stream')]
    .filter(words => words !== '')
    .join(', ')

const counted = (n: number, what: string): string => (n === 0 ? '' : `${n} ${what}${n === 1 ? '' : 's'}`)
