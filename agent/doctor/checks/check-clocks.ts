import { formatDuration } from '../../rules/drain/duration.ts'
import { fail, ok, warn, wordsOf, type Check, type Finding } from './finding.ts'

/** A server whose `Date` header can be read. */
interface RemoteClock {
  readonly of: string
  /** Whether deadlines come from this clock. */
  readonly decides: boolean
  /** The text of the `Date` header; `undefined` if there is none. */
  date(signal: AbortSignal): Promise<string | undefined>
}

/** The resolution of the `Date` header: whole seconds. */
const GRAIN_MS = 1000
/** A larger difference moves the deadline of a hook by more than the header's resolution. */
const NOTICEABLE_MS = 2000

/** Kubernetes' default grace. */
const DEFAULT_GRACE_MS = 30_000

/**
 * Checks that other clocks agree with the agent's. A deadline is the earlier of deletionTimestamp and the agent's own estimate (see
 * rules/drain/budget.ts). So an API server whose clock is ahead only changes displayed times. If its clock is behind, hooks are held
 * for a shorter time. The check fails if nothing of the default grace is left.
 */
export function checkClocks(clocks: readonly RemoteClock[], now: () => number, reserveMs: number): Check {
  return signal => Promise.all(clocks.map(clock => compare(clock, signal)))

  async function compare(clock: RemoteClock, signal: AbortSignal): Promise<Finding> {
    const name = 'clock'
    const { of } = clock
    const asked = now()
    let text: string | undefined
    try {
      text = await clock.date(signal)
    } catch (err) {
      return warn(name, `the clock of ${of} cannot be read: ${wordsOf(err)}`, `see the check of ${of}`)
    }
    const theirs = Date.parse(text ?? '')
    if (Number.isNaN(theirs)) return ok(name, `${of} does not tell its time`)
    const skew = skewOf(theirs, asked, now())
    const size = formatDuration(Math.abs(skew))
    if (Math.abs(skew) <= NOTICEABLE_MS)
      return ok(name, `${of} agrees with ours (within ${formatDuration(NOTICEABLE_MS)})`)
    const what = `${of} is ${size} ${skew > 0 ? 'ahead of' : 'behind'} ours`
    const change = 'synchronise the clocks (NTP)'
    const fatal = clock.decides && -skew >= DEFAULT_GRACE_MS - reserveMs
    return (fatal ? fail : warn)(name, what, change)
  }
}

/** How far the remote clock is ahead of the agent's. The server read it between request and answer, in whole seconds. */
function skewOf(theirs: number, asked: number, heard: number): number {
  if (theirs > heard) return theirs - heard
  if (theirs + GRAIN_MS < asked) return theirs + GRAIN_MS - asked
  return 0
}
