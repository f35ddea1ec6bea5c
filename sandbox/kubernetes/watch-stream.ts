import type { FaultState } from './faults.ts'
import type { Response } from './listener.ts'
import type { Sink } from './watch.ts'

/** The stream of a watch to one client, with its faults. */
export interface WatchStream extends Sink {
  /** `mute(false)` ends a stream that has lost events, since no real server continues after a gap. */
  mute(silent: boolean): void
}

/** If more bytes than this are unsent, the initial events wait for the client. */
const MOST_WAITING = 8 * 1024 * 1024

const waiting = (response: Response): number =>
  'stream' in response ? response.stream.writableLength : response.writableLength

/** Cuts the bytes at random places, even inside a UTF-8 character. */
function pieces(bytes: Buffer): Buffer[] {
  const cuts = Array.from({ length: 1 + Math.floor(Math.random() * 4) }, () =>
    Math.floor(Math.random() * bytes.length)
  )
  const edges = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge))
}

/** `onEnd` is called once, whichever side ends the stream. */
export function openWatchStream(response: Response, faults: FaultState, onEnd: () => void): WatchStream {
  let silent = faults.newWatchesMute()
  let lost = false
  let ended = false
  let queue: Promise<void> | undefined

  const finish = () => {
    if (ended) return
    ended = true
    onEnd()
  }
  response.on('close', finish)

  const write = (chunk: string | Buffer) => {
    if (!response.writable || response.destroyed) return
    if ('stream' in response) response.write(chunk)
    else response.write(chunk)
  }
  // One turn of the event loop between two pieces, so that they are not sent together.
  const writeLater = (chunk: Buffer) => {
    queue = (queue ?? Promise.resolve()).then(
      () =>
        new Promise<void>(resolve => {
          setImmediate(() => {
            write(chunk)
            resolve()
          })
        })
    )
  }

  const stream: WatchStream = {
    send(line) {
      lost ||= silent
      if (silent || ended) return
      const text = faults.takeCorruption() ? `${line.slice(0, line.length / 2)}\n` : line
      if (faults.splits()) for (const piece of pieces(Buffer.from(text))) writeLater(piece)
      else if (queue) writeLater(Buffer.from(text))
      else write(text)
    },
    async sent() {
      await new Promise(resolve => setImmediate(resolve))
      await queue
      if (ended || waiting(response) < MOST_WAITING) return
      const { promise, resolve } = Promise.withResolvers<void>()
      response.once('drain', resolve)
      response.once('close', resolve)
      await promise
      response.off('drain', resolve)
      response.off('close', resolve)
    },
    end() {
      finish()
      if (queue) void queue.then(() => response.end())
      else response.end()
    },
    mute(value) {
      silent = value
      if (!silent && lost) stream.end()
    }
  }
  return stream
}
