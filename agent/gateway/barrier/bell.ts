/** Wakes all waiters at once; ringing without waiters does nothing. */
interface Bell {
  readonly ring: () => void
  readonly heard: () => Promise<void>
}

export function createBell(): Bell {
  let next = Promise.withResolvers<void>()
  return {
    ring: () => {
      next.resolve()
      next = Promise.withResolvers()
    },
    heard: () => next.promise
  }
}
