import * as fc from 'fast-check'
import { buildSnapshot } from '../../agent/report/show/build-snapshot.ts'
import type { Grade } from '../../agent/rules/drain/drain.ts'
import type { Brief } from '../../agent/report/peers/book.ts'
import type { DrainLag, DrainView, Moments } from '../../agent/report/snapshot/drain-view.ts'
import { sources } from './snapshot.ts'

const QUIET = buildSnapshot(sources({ drains: [] }))
const [VIEW] = buildSnapshot(sources()).drains as [DrainView]

/** One drain as one agent shows it; a test states only the differences. */
export const drainOf = (
  uid: string,
  { moments, ...differs }: Partial<Omit<DrainView, 'moments'>> & { moments?: Partial<Moments> } = {}
): DrainView => ({ ...VIEW, uid, pod: uid, ...differs, moments: { ...VIEW.moments, ...moments } })

/** A drain that was proved, and whose pod is gone. */
export const provedOf = (uid: string, at: number, grade: Grade = 'barrier'): DrainView =>
  drainOf(uid, {
    phase: 'gone',
    verdict: { kind: 'proven', grade, result: 'drained', lastEndpoint: false },
    moments: { hookAt: null, seenAt: at - 50, sealedAt: at - 10, confirmedAt: at, goneAt: at + 1000 },
    hooks: 0
  })

/** The state of one agent; a test states only the differences. */
export const briefOf = (id: string, differs: Partial<Brief> = {}, startedAt = 0): Brief => ({
  ...QUIET,
  ...differs,
  agent: { ...QUIET.agent, id, name: id, startedAt },
  totals: { ...QUIET.totals, drains: 0, ...differs.totals }
})

const time = fc.integer({ min: 0, max: 9 })
const maybe = fc.option(time)
const grade = fc.constantFrom<Grade>('barrier', 'observed', 'accepted', 'timer')
const why = fc.constantFrom('', 'not asked yet', 'requests are in flight')

/** Any view of one drain. Few values, so that two views often share some. */
export const anyView: fc.Arbitrary<DrainView> = fc
  .record({
    phase: fc.constantFrom('draining', 'proven', 'expired', 'gone'),
    kind: fc.constantFrom('waiting', 'proven'),
    grade: fc.option(grade),
    lastEndpoint: fc.boolean(),
    unlisted: fc.boolean(),
    why,
    deadline: time,
    seenAt: time,
    hookAt: maybe,
    sealedAt: maybe,
    confirmedAt: maybe,
    ackAt: maybe,
    goneAt: maybe,
    hooks: time,
    afterAck: maybe,
    longLived: fc.option(fc.record({ upgraded: time, sse: time, streams: time, oldestMs: time })),
    gateways: fc.uniqueArray(
      fc.record(
        { name: fc.constantFrom('apisix-0', 'apisix-1'), why, grade, at: time, sealedAt: time },
        { requiredKeys: ['name', 'why'] }
      ),
      { selector: ({ name }) => name }
    ),
    holders: fc.uniqueArray(
      fc.record({
        key: fc.constantFrom('upstreams/a', 'upstreams/b'),
        state: fc.constantFrom('listed', 'removed', 'kept-last'),
        why,
        at: maybe
      }),
      { selector: ({ key }) => key }
    )
  })
  .map(
    ({ kind, grade: best, lastEndpoint, seenAt, hookAt, sealedAt, confirmedAt, ackAt, goneAt, ...view }) => ({
      ...drainOf('web-1'),
      ...(view as Pick<
        DrainView,
        'phase' | 'unlisted' | 'why' | 'deadline' | 'hooks' | 'afterAck' | 'longLived' | 'holders'
      >),
      gateways: view.gateways as DrainView['gateways'],
      verdict: {
        kind: kind as 'waiting',
        grade: best,
        result: kind === 'proven' ? 'drained' : null,
        lastEndpoint
      },
      moments: { ...VIEW.moments, seenAt, hookAt, sealedAt, confirmedAt, ackAt, goneAt }
    })
  )

/** Any measure of one lag. */
export const anyLag: fc.Arbitrary<DrainLag> = fc
  .record({ at: time, ms: time, idleMs: maybe, grade })
  .map(lag => ({ ...lag, uid: 'web-1', namespace: 'shop', owner: null }))
