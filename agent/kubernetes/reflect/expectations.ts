import type { Clock } from '../../base/clock.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import { isLater, type Revision } from './revision.ts'

interface Expectation {
  /** `undefined`: any event is enough. */
  readonly revision: Revision | undefined
  readonly by: Millis
  readonly why: string
}

/** Changes that are known from another source, and that a watch must show in time. */
interface Expectations {
  expect(revision: Revision | undefined, withinMs: number, why: string): void
  /** The stream has reached this revision. */
  seen(revision: Revision | undefined): void
  clear(): void
  readonly size: number
}

/** @param onMissed called once, when the first expectation is overdue; all are then dropped */
export function createExpectations(clock: Clock, onMissed: (why: string) => void): Expectations {
  let open: readonly Expectation[] = []
  let cancel = () => {}
  const hold = (next: readonly Expectation[]) => {
    open = next
    cancel()
    cancel = () => {}
    const [first] = open.toSorted((a, b) => a.by - b.by)
    if (first) cancel = clock.alarm(first.by, () => (hold([]), onMissed(first.why)))
  }
  return {
    expect(revision, withinMs, why) {
      hold([...open, { revision, by: clock.now() + withinMs, why }])
    },
    seen(revision) {
      if (open.length === 0) return
      const left = open.filter(e => e.revision !== undefined && isLater(e.revision, revision))
      if (left.length !== open.length) hold(left)
    },
    clear: () => hold([]),
    get size() {
      return open.length
    }
  }
}
