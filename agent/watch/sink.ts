/** Where a reflector puts facts. Both say whether anything that matters has changed: most updates are status noise. */
export interface Sink<F> {
  set(fact: F): boolean
  /** `last` is the object's final state, where the server told it. */
  gone(uid: string, last: F | undefined): boolean
}
