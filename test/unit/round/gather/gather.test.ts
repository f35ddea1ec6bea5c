import { expect } from 'chai'
import { gather, gathering } from '../../../../agent/round/gather/gather.ts'
import { createStatuses } from '../../../../agent/round/gather/drain-status.ts'
import { unanswered } from '../../../../agent/gateway/barrier/barrier-reading.ts'
import type { Sources } from '../../../../agent/round/gather/sources.ts'
import { drainOf, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod, terminating } from '../../../build/pod.ts'
import { worldOf } from '../../../build/world.ts'

const BEGAN = 1000
const NO_ADMIN = Infinity

const readingOf = (places: number) => ({
  ...unanswered(undefined, BEGAN, ''),
  word: { complete: true, places, hidden: 0, found: [], succeeded: [], more: 0 }
})

describe('evidence about a pod', () => {
  const old = pod('old', { ...terminating(BEGAN), ips: ['10.0.0.1'] })
  const whole = drainOf(seen(old), BEGAN)

  /** Returns a function that plays rounds about a drain of `old`, all with the same status. */
  function rounds(drain = whole) {
    const status = createStatuses().of(old.uid)
    return (
      now: number,
      {
        readAt = now,
        tookOver = false,
        nodes = [] as string[],
        services = [] as object[],
        places = undefined as number | undefined
      } = {}
    ) => {
      const sources = {
        cluster: {
          gateways: () => [{ id: 'silent' }],
          parts: () => [],
          slices: { listing: () => [], servicesOf: () => services },
          services: { byName: () => undefined, aliasesTo: () => [], isNodePort: () => false }
        },
        inventory: {
          readAt: () => readAt,
          problem: () => '',
          names: () => [],
          discovered: () => [],
          holders: () => new Map(),
          answers: () => []
        },
        writer: { status: () => undefined },
        ...(places !== undefined && {
          barrier: { doubt: () => '', state: () => undefined, reading: () => readingOf(places) }
        }),
        mode: { current: () => ({ mode: readAt === NO_ADMIN ? 'none' : 'etcd' }) }
      } as unknown as Sources
      const shared = gathering(sources, {
        world: worldOf([holder('web', nodes)], [old]),
        drains: drainsOf([drain]),
        tookOver: host => tookOver && host === '10.0.0.1',
        before: { changes: [], kept: [] },
        now,
        gatewaysAreOld: false
      })
      return gather(drain, status, shared)
    }
  }

  it('that no holder lists counts from a listing from after the end began', () => {
    const round = rounds()
    expect(round(1001, { readAt: BEGAN - 1 }).isAbsent).to.equal(false)
    expect(round(1002).isAbsent).to.equal(true)
  })

  it('that no list can show counts by the words of all gateways', () => {
    expect(rounds()(1001, { readAt: NO_ADMIN }).isAbsent).to.equal(false)
    expect(rounds()(1001, { readAt: NO_ADMIN, places: 1 }).isAbsent).to.equal(false)
    expect(rounds()(1001, { readAt: NO_ADMIN, places: 0 }).isAbsent).to.equal(true)
  })

  it('that a holder has listed since shows no absence', () => {
    const round = rounds()
    expect(round(1001, { nodes: ['10.0.0.1:8080'] }).isAbsent).to.equal(false)
    expect(round(1002).isAbsent).to.equal(false)
  })

  it('of which a sidecar restarts has the holders that list a port of the sidecar, or no port', () => {
    const round = rounds({ ...whole, isWhole: false, ports: [9090] })
    const keys = (nodes: string[]) => round(1001, { nodes }).holders.map(({ key }) => key)
    expect(keys(['10.0.0.1:8080'])).to.deep.equal([])
    expect(keys(['10.0.0.1'])).to.deep.equal(['upstreams/web'])
    expect(keys(['10.0.0.1:9090'])).to.have.length(2)
  })

  it('that took over from another one shows no absence, even if no entry names it any more', () => {
    const round = rounds()
    expect(round(1001, { tookOver: true }).isAbsent).to.equal(false)
    expect(round(1002).isAbsent).to.equal(false)
  })

  it('names its Service as unread while the watch of slices is ahead of that of Services', () => {
    const ahead = rounds()(1001, { services: [{ namespace: old.namespace, name: 'web' }] })
    expect(ahead.hiddenBy.map(({ why }) => why).join()).to.match(/Service/)
    expect(rounds()(1001).hiddenBy).to.deep.equal([])
  })
})
