/** Shows the progress of a run: one line that is rewritten in a terminal, plain lines elsewhere. */
export interface Progress {
  /** Shows the present state, at most ten times a second in a terminal, and once a second elsewhere. */
  update(text: string): void
  /** Shows a last text, which stays on the screen. */
  done(text: string): void
}

interface Screen {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** Plain lines are for logs: one a second is enough. */
const PLAIN_EVERY_MS = 1000
const LIVE_EVERY_MS = 100

export function createProgress(screen: Screen, now: () => number = () => performance.now()): Progress {
  const live = screen.isTTY === true
  const everyMs = live ? LIVE_EVERY_MS : PLAIN_EVERY_MS
  let shownAt = -Infinity
  const rewrite = (text: string) => screen.write(`\r\u001B[2K${text}`)
  return {
    update(text) {
      if (now() - shownAt < everyMs) return
      shownAt = now()
      // A line that wraps could not be rewritten.
      if (live) rewrite(text.slice(0, (screen.columns ?? 80) - 1))
      else screen.write(`${text}\n`)
    },
    done(text) {
      shownAt = -Infinity
      if (live) rewrite(`${text}\n`)
      else screen.write(`${text}\n`)
    }
  }
}
