import type { Page } from 'playwright-core'

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly args: { readonly name?: string }
  /** CPU time in µs. */
  readonly tdur?: number
}

/**
 * Returns the longest task of the page's main thread while `play` runs, in ms of CPU time. CPU time excludes the work of other
 * processes on a busy machine.
 * @throws Error if the browser reported no CPU time
 */
export async function longestTask(page: Page, play: () => Promise<void>): Promise<number> {
  const session = await page.context().newCDPSession(page)
  const events: TraceEvent[] = []
  session.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])))
  await session.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel', '__metadata'] }
  })
  await play()
  const complete = new Promise<void>(resolve => session.once('Tracing.tracingComplete', () => resolve()))
  await session.send('Tracing.end')
  await complete
  await session.detach()
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`
  const main = new Set(
    events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(threadOf)
  )
  const tasks = events.filter(event => main.has(threadOf(event)) && event.name.endsWith('RunTask'))
  const longest = Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1000
  if (!(longest > 0)) throw new Error('the browser reported no CPU time of tasks')
  return longest
}
