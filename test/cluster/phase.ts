/** Runs the work, prints how long it took, and returns its result. */
export async function phase<T>(name: string, work: () => Promise<T>): Promise<T> {
  const begun = Date.now()
  const result = await work()
  console.log(`${name} in ${((Date.now() - begun) / 1000).toFixed(1)} s`)
  return result
}
