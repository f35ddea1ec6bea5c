import * as fc from 'fast-check'
import { buildSnapshot } from '../../agent/report/show/build-snapshot.ts'
import type { LeadsTo } from '../../agent/rules/plan/leads-to.ts'
import type { HolderView } from '../../agent/report/snapshot/holder-view.ts'
import type { Snapshot } from '../../agent/report/snapshot/snapshot.ts'
import type { DrainView } from '../../agent/report/snapshot/drain-view.ts'
import { pod } from './pod.ts'
import { ackFor } from './serve.ts'
import { sources } from './snapshot.ts'

const QUIET = buildSnapshot(sources())
const [DRAIN] = QUIET.drains as [DrainView]

/** Few names and few values, so that two snapshots often share some. */
const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', '__proto__', 'constructor')
const time = fc.integer({ min: 0, max: 3 })
const words = fc.constantFrom('', 'seen', '<b>x</b>')

const drain: fc.Arbitrary<DrainView> = fc
  .record({ uid: name, hooks: time, why: words, seenAt: time })
  .map(({ uid, hooks, why, seenAt }) => ({
    ...DRAIN,
    uid,
    hooks,
    why,
    moments: { ...DRAIN.moments, seenAt }
  }))
const holder: fc.Arbitrary<HolderView> = fc
  .record({ key: name, nodes: fc.array(name), since: time })
  .map(({ key, nodes, since }) => ({
    key,
    name: null,
    owner: 'unknown',
    form: 'map',
    service: null,
    nodes,
    ghosts: nodes.map(node => ({ node, since })),
    missing: [],
    notReady: [],
    revision: since,
    behind: null,
    lags: [],
    onSuccessors: null
  }))
const place: fc.Arbitrary<LeadsTo> = fc
  .record({ holder: name, why: words, pods: fc.array(name), count: time })
  .map(differs => ({ ...differs, name: null, node: null, change: '' }))
const named = <T>(item: fc.Arbitrary<T>, key: (item: T) => string) =>
  fc.uniqueArray(item, { selector: key, maxLength: 6 })

/** Any snapshot that an agent could publish, in the parts that matter to a change. */
export const anySnapshot: fc.Arbitrary<Snapshot> = fc
  .record({
    at: time,
    drains: named(drain, ({ uid }) => uid),
    holders: named(holder, ({ key }) => key),
    hidden: named(place, ({ holder, why }) => `${holder} ${why}`),
    gateways: named(
      fc.record({ id: name, why: words }).map(differs => ({ ...QUIET.gateways[0]!, ...differs })),
      ({ id }) => id
    ),
    watches: named(
      fc.record({ kind: name, objects: time }).map(differs => ({ ...QUIET.watches[0]!, ...differs })),
      ({ kind }) => kind
    ),
    past: named(drain, ({ uid }) => uid),
    unproved: named(drain, ({ uid }) => uid),
    acks: named(
      time.map(at => ({ at, by: 'a', ack: ackFor(pod('web-1')) })),
      ({ at }) => String(at)
    ),
    lags: named(
      fc.record({ uid: name, at: time, ms: time }).map(differs => ({
        ...differs,
        grade: 'barrier' as const,
        namespace: 'shop',
        owner: null
      })),
      ({ uid }) => uid
    ),
    totals: time.map(rounds => ({ ...QUIET.totals, rounds })),
    inventory: time.map(holders => ({ ...QUIET.inventory, holders })),
    agent: fc.boolean().map(dryRun => ({ ...QUIET.agent, dryRun }))
  })
  .map(differs => ({ ...QUIET, ...differs }))
