/** The calls that end the parts of something, in the order in which the parts started. */
export type Ends = (() => unknown)[]

/** Ends the parts in reverse order, because a part may call the parts that started before it. A second call does nothing. */
export async function endAll(ends: Ends): Promise<void> {
  for (const end of ends.splice(0).toReversed()) await end()
}

/** Builds something from parts. If that fails, the parts that have started are ended. */
export async function builtFrom<T>(
  build: (ends: Ends, close: () => Promise<void>) => Promise<T>
): Promise<T> {
  const ends: Ends = []
  const close = () => endAll(ends)
  try {
    return await build(ends, close)
  } catch (error) {
    await close()
    throw error
  }
}
