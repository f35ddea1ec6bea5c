import { expect } from 'chai'
import { editNodes } from '../../../../agent/gateway/apisix/holders.ts'
import { nodeFor, withWishes, type Edit } from '../../../../agent/gateway/write/edit.ts'
import { holder, node } from '../../../build/holder.ts'
import * as fc from 'fast-check'
import { systemClock } from '../../../../agent/base/clock.ts'
import type { PodUid } from '../../../../agent/rules/drain/facts.ts'
import { holdersOf } from '../../../../agent/gateway/apisix/holders.ts'
import { createObjectQueue } from '../../../../agent/gateway/write/object-queue.ts'
import { createWriter } from '../../../../agent/gateway/write/writer.ts'
import type { Resource } from '../../../../agent/rules/plan/holder.ts'
import type { Json, JsonObject } from '../../../../sandbox/apisix/json.ts'
import { silent, startAdmin } from '../../../build/apisix.ts'

const WEB = holder('web', ['10.0.0.1:80', '10.0.0.2:80'])
const drained = (...remove: string[]): Edit => ({ path: [], holder: WEB, add: [], remove: new Set(remove) })
const told = (edits: readonly Edit[]) =>
  edits.map(({ add, remove, mayEmpty }) => ({ add: add.map(n => n.key), remove: [...remove], mayEmpty }))

describe('nodes wished for a holder', () => {
  it('go into the same edit as drained nodes', () => {
    const wish = { holder: WEB.key, put: [node('10.0.0.3:80')], remove: [] }
    expect(told(withWishes([drained('10.0.0.1:80')], [wish], [WEB]))).to.deep.equal([
      { add: ['10.0.0.3:80'], remove: ['10.0.0.1:80'], mayEmpty: undefined }
    ])
  })

  it('do not empty a holder together with a drain, but may do so alone', () => {
    const last = { holder: WEB.key, put: [], remove: ['10.0.0.2:80'] }
    expect(told(withWishes([drained('10.0.0.1:80')], [last], [WEB]))).to.deep.equal([
      { add: [], remove: ['10.0.0.1:80'], mayEmpty: undefined }
    ])
    const all = { holder: WEB.key, put: [], remove: ['10.0.0.1:80', '10.0.0.2:80'] }
    const [edit] = withWishes([], [all], [WEB])
    expect(editNodes({ '10.0.0.1:80': 1, '10.0.0.2:80': 1 }, edit!)).to.deep.equal({})
  })

  it('do not put back a node that is being drained', () => {
    const wish = { holder: WEB.key, put: [node('10.0.0.1:80')], remove: [] }
    expect(told(withWishes([drained('10.0.0.1:80')], [wish], [WEB]))[0]?.add).to.deep.equal([])
  })

  it('are none for a removed holder, or one whose nodes APISIX discovers', () => {
    const wish = { holder: WEB.key, put: [node('10.0.0.3:80')], remove: [] }
    expect(withWishes([], [wish], [])).to.deep.equal([])
    const found = { ...WEB, discovery: { type: 'dns', service: 'web' } }
    expect(withWishes([], [wish], [found])).to.deep.equal([])
  })

  it('give a new node the weight and priority of the node that it is like, else weight 100', () => {
    const raw = { host: '10.0.0.1', port: 80, weight: 5, priority: 2, metadata: { rack: 'a' } }
    const like = { ...WEB.nodes[0]!, weight: 5, raw }
    const array = { ...WEB, form: 'array' as const }
    const added = { host: '10.0.0.3', port: 80 }
    expect(nodeFor({ key: '10.0.0.3:80', like: undefined }, array).raw).to.deep.equal({
      ...added,
      weight: 100
    })
    expect(nodeFor({ key: '10.0.0.3:80', like }, array).raw).to.deep.equal({
      ...added,
      weight: 5,
      priority: 2
    })
    expect(nodeFor({ key: '10.0.0.3:80', like }, WEB)).to.include({ raw: '10.0.0.3:80', weight: 5 })
  })
})

describe('an object that can only be written whole', () => {
  const node = (host: string, more: JsonObject = {}): JsonObject => ({ host, port: 80, weight: 1, ...more })
  const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>
  const fields = (value: fc.Arbitrary<Json>) =>
    fc.dictionary(
      fc.string({ minLength: 1 }).filter(key => key !== 'traffic-split'),
      value,
      { maxKeys: 4 }
    ) as fc.Arbitrary<JsonObject>

  /** Random values for the parts of the object that belong to other writers: labels, other plugins than traffic-split, and its rules. */
  const others = fc.record({
    labels: fields(fc.stringMatching(/^[!-~]{1,20}$/)),
    plugins: fields(json),
    match: fc.array(fc.record({ vars: fc.array(json) })),
    metadata: fields(json)
  })

  /** Returns an object that lists these nodes in the second upstream of the second of three rules. */
  function objectOf(
    { labels, plugins, match, metadata }: typeof others extends fc.Arbitrary<infer O> ? O : never,
    hosts: readonly string[],
    isLabelled: boolean
  ): JsonObject {
    const nodes = hosts.map(host => node(host, { metadata }))
    const upstream = { type: 'roundrobin', nodes, keepalive_pool: { size: 7 } }
    const rules = [
      { match, weighted_upstreams: [{ weight: 1 }] },
      { weighted_upstreams: [{ weight: 3 }, { upstream, weight: 2 }, { upstream_id: 'other', weight: 0 }] },
      { match, weighted_upstreams: [{ weight: 9 }] }
    ]
    return {
      ...(isLabelled && { desc: 'd' }),
      plugins: { 'key-auth': { key: 'k' }, 'traffic-split': { rules }, ...plugins },
      ...(isLabelled && { labels })
    }
  }

  /** Returns the text of an object, in the order of its fields, without the times that APISIX sets. */
  const textOf = (value: JsonObject | undefined): string => {
    const { create_time: _created, update_time: _updated, ...rest } = value ?? {}
    return JSON.stringify(rest)
  }

  const kinds: readonly (readonly [Resource, (id: string) => JsonObject])[] = [
    ['consumers', id => ({ username: id })],
    ['consumer_groups', () => ({})],
    ['plugin_configs', () => ({})],
    ['global_rules', () => ({})],
    ['routes', () => ({ uri: '/*' })]
  ]
  for (const [resource, own] of kinds) {
    const isLabelled = resource !== 'global_rules'
    it(`loses the node and not one other byte: ${resource}`, async () => {
      const apisix = await startAdmin()
      const inventory = { learn: () => {}, forget: () => {} }
      const writer = createWriter({ admin: apisix.client, inventory, clock: systemClock, log: silent })
      let count = 0
      try {
        await fc.assert(
          fc.asyncProperty(others, async theirs => {
            // Each run uses a new object, because a second write of an object has to wait after the first.
            const id = `jack-${(count += 1)}`
            apisix.put(resource, id, {
              ...own(id),
              ...objectOf(theirs, ['10.0.0.1', '10.0.0.2'], isLabelled)
            })
            const value = apisix.value(resource, id)!
            const [holder] = holdersOf({ resource, id: id, value, revision: 0 })
            const uid = 'uid-web-1' as PodUid
            writer.submit({ holder: holder!, nodes: [{ key: '10.0.0.1:80', uid }] })
            await writer.idle()
            expect(writer.status(holder!.key, '10.0.0.1:80', uid)?.state).to.equal('removed')
            const left = { id, ...own(id), ...objectOf(theirs, ['10.0.0.2'], isLabelled) }
            expect(textOf(apisix.value(resource, id))).to.equal(textOf(left))
            writer.forget(uid)
          }),
          { numRuns: 25 }
        )
      } finally {
        await writer.stop()
        await apisix.close()
      }
    })
  }
})

it('an object that was written waits for more, and one that refused waits longer each time', () => {
  const queue = createObjectQueue({ resource: 'upstreams', id: 'web' })
  const readyAt = (wrote: boolean, progress: boolean) => (
    queue.ended(1000, { wrote, progress }),
    queue.readyAt()
  )
  const all = [readyAt(true, true), readyAt(false, true), readyAt(false, false), readyAt(false, false)]
  expect(all).to.deep.equal([1350, 1000, 1100, 1200])
})
