import { expect } from 'chai'
import * as fc from 'fast-check'
import { bearerOf, normaliseAddress } from '../../../agent/report/page/guard.ts'
import { readOptions, parseDuration } from '../../../agent/rules/drain/annotations.ts'
import type { Endpoint, PodUid, ServiceFact } from '../../../agent/rules/drain/facts.ts'
import { candidatesOf } from '../../../agent/rules/plan/successors.ts'
import { readJson, neighbourhoodOf } from '../../../agent/base/read.ts'
import { polled } from '../../../agent/gateway/apisix/barrier-wire.ts'
import { review } from '../../../agent/hook/inject/inject.ts'
import { readLine } from '../../../agent/kubernetes/transport/objects.ts'
import { hooksOf } from '../../../agent/doctor/checks/check-hooks.ts'
import { holdersOf, addressOf, readNodes } from '../../../agent/gateway/apisix/holders.ts'
import { toEndpointFact, createSliceStore } from '../../../agent/kubernetes/facts/slice-store.ts'
import { toPodFact } from '../../../agent/kubernetes/facts/pod-fact.ts'
import { toServiceFact, createServiceStore } from '../../../agent/kubernetes/facts/service-store.ts'
import { parseQuery } from '../../../agent/hook/identify.ts'
import { claimsOf, settleClaims } from '../../../agent/rules/members/members.ts'
import { waysTo } from '../../../agent/rules/plan/hidden.ts'
import { nameKey } from '../../../agent/rules/plan/holder.ts'
import { mustBeLinear, pump, pumped } from '../../build/growth.ts'
import { pod } from '../../build/pod.ts'
import { worldOf } from '../../build/world.ts'
import { endpoint, serviceFact, slice } from '../../build/service.ts'
import { INJECT } from './inject.ts'

const withLifecycle = (preStop: object) => ({
  spec: { containers: [{ name: 'app', lifecycle: { preStop } }] }
})
/** Returns a hook whose words each contain the agent's path, because the code reads only hooks with this path. */
const withHook = (command: readonly string[]) =>
  withLifecycle({ exec: { command: command.map(word => `curl http://a/v1/prestop ${word}`) } })
const withGet = (text: string) =>
  withLifecycle({ httpGet: { path: `/v1/prestop?${text}`, host: text, port: text } })

const WORDS =
  'a|1|.|-|_|/| |,|(|)|=|!|!=| in | notin |:|[|]|%|?|&|"|\\|\n|\t|é|::|s|ms|svc|Bearer |pod=|timeout |sleep 5|curl |$X|;|-m 5 '
const words = WORDS.split('|')

/** Every function that reads a text by a tenant, a caller or an author of routes. */
const TEXTS: Readonly<Record<string, (text: string) => unknown>> = {
  'a duration': parseDuration,
  'annotations of a pod': text =>
    readOptions({ 'apisix-drain.io/reserve': text, 'apisix-drain.io/long-lived-wait': text }),
  'annotations of a Service': text =>
    claimsOf(
      service('web', {
        'apisix-drain.io/upstream': text
      })
    ),
  'the address of a node': text => [addressOf(text), readNodes({ [text]: 1 }), readNodes([{ host: text }])],
  'a domain name': nameKey,
  'the neighbourhood of an address': neighbourhoodOf,
  'the query of a hook': text => parseQuery(new URLSearchParams(text)),
  'the address of a caller': normaliseAddress,
  'an authorization header': bearerOf,
  'the preStop hook of a pod': text => [
    hooksOf(withHook(['sh', '-c', text])),
    hooksOf(withHook([text, text]))
  ],
  'an httpGet hook of a pod': text => hooksOf(withGet(text))
}

const service = (
  name: string,
  annotations: ServiceFact['annotations'] = {},
  differs: Partial<ServiceFact> = {}
) => serviceFact(name, { uid: name, annotations, ...differs })

const metadata = (differs: object = {}) => ({ uid: 'u', namespace: 'shop', name: 'web', ...differs })
const many = (size: number) => Array.from({ length: size }, (_, i) => i)
const fields = (size: number, prefix = '') =>
  Object.fromEntries(many(size).map(i => [`${prefix}k${i}`, `v${i}`]))

const ENDPOINT = endpoint('uid-web-1')
const sliceAt = (i: number, endpoints: readonly Endpoint[] = [ENDPOINT]) =>
  slice(`s${i}`, endpoints, { uid: `s${i}`, service: `s${i % 10}`, ports: [] })
/** Every function that reads an object, or a set of objects, of any size. */
const OBJECTS: Readonly<Record<string, (size: number) => () => void>> = {
  'a pod with labels and annotations': size => {
    const annotations = fields(size, 'apisix-drain.io/')
    const object = { metadata: metadata({ labels: fields(size), annotations }), spec: {}, status: {} }
    return () => toPodFact(object)
  },
  'a pod with ports': size => {
    const ports = many(size).map(i => ({ containerPort: (i % 65_000) + 1 }))
    return () => toPodFact({ metadata: metadata(), spec: { containers: [{ ports }] }, status: {} })
  },
  'a Service with ports': size => {
    const ports = many(size).map(i => ({ name: `p${i}`, port: (i % 65_000) + 1 }))
    return () => toServiceFact({ metadata: metadata(), spec: { ports } })
  },
  'an admission review': size => {
    const names = many(size).map(i => `c${i}`)
    const containers = names.map(name => ({ name, ports: [{ containerPort: 80 }] }))
    const annotations = { 'apisix-drain.io/inject-containers': names.join(',') }
    const object = { metadata: metadata({ annotations }), spec: { containers } }
    const text = Buffer.from(JSON.stringify({ request: { uid: 'u', kind: { kind: 'Pod' }, object } }))
    return () => review(readJson(text), INJECT)
  },
  'an answer of a Control API': size => {
    const value = { upstream: { nodes: fields(8, '10.0.0.1:') } }
    const text = JSON.stringify(many(size).map(i => ({ key: `/routes/${i}`, value })))
    const each = (item: unknown) =>
      holdersOf({ resource: 'routes', id: '1', revision: 1, ...(item as { value: {} }) })
    return () => readJson(text, { each })
  },
  'an answer of a barrier': size => {
    const inflight = { requests: 0, long: 0 }
    const entry = { uid: 'u', ip: 'x', state: 'sealed', ttl: 1, inflight, bypasses: 0, late: 0 }
    const answer = {
      wire: 1,
      instance: 'i',
      fit: true,
      now: 1,
      entries: many(size).map(() => entry),
      unknown: []
    }
    const text = JSON.stringify(answer)
    return () => polled.parse(readJson(text))
  },
  'a line of a watch': size => {
    const text = Buffer.from(
      JSON.stringify({ type: 'ADDED', object: { metadata: metadata({ labels: fields(size) }) } })
    )
    return () => readLine(text)
  },
  'a Service in which many pods have many ports': size => {
    const ports = many(size).map(i => ({ name: `p${i}`, port: i + 1 }))
    const endpoints = many(size).map(i => ({ ...ENDPOINT, podUid: `u${i}` as PodUid }))
    const fact = { ...sliceAt(0, endpoints), ports }
    const standing = [{ service: 'web', portName: 'p1', port: 2 }]
    const none = () => undefined
    return () => candidatesOf(pod('web-0'), standing, true, () => [fact], none)
  },
  'an EndpointSlice': size => {
    const endpoints = many(size).map(i => ({
      addresses: [`10.0.0.${i}`],
      targetRef: { kind: 'Pod', uid: `${i}` }
    }))
    return () => toEndpointFact({ metadata: metadata(), endpoints, ports: [] })
  },
  'a route with nodes': size => {
    const nodes = fields(size, '10.0.0.1:')
    const value = { upstream: { nodes, labels: fields(size) } }
    return () => holdersOf({ resource: 'routes', id: '1', value, revision: 1 })
  },
  'claims of Services on one upstream': size => {
    const all = many(size).map(i => service(`web-${i}`, { 'apisix-drain.io/upstream': 'web' }))
    return () => settleClaims(all, () => true)
  },
  'ExternalName Services in a chain': size => {
    const { store, sink } = createServiceStore()
    for (const i of many(size)) sink.set(service(`s${i + 1}`, {}, { externalName: `s${i}.shop.svc` }))
    const behind = {
      services: [service('s0')],
      elsewhere: [],
      aliasesTo: (key: string) => store.aliasesTo(key),
      servicesKnown: true,
      isNodePort: () => false
    }
    return () => waysTo(worldOf([], []), pod('web-1'), behind)
  },
  'slices that come and go': size => () => {
    const { store, sink } = createSliceStore()
    for (const i of many(size)) {
      sink.set(sliceAt(i))
      sink.gone(`s${i}`, undefined)
    }
    store.listing(pod('web-1'))
  }
}

const COMMAS = { before: '', repeated: 'a,', after: '' }
/** Texts that once took too long, tested in every run. */
const EXAMPLES: Readonly<Record<string, [typeof COMMAS][]>> = {
  'the address of a caller': [[{ before: '', repeated: '%a', after: '\n' }]]
}

describe('no text and no object of a tenant costs more than its length:', () => {
  for (const [name, read] of Object.entries(TEXTS)) {
    it(name, () => {
      fc.assert(
        fc.property(pumped(words), parts => {
          mustBeLinear(size => {
            const text = pump(parts, size)
            return () => void read(text)
          }, 4000)
        }),
        { numRuns: 30, examples: EXAMPLES[name] ?? [] }
      )
    })
  }
  for (const [name, make] of Object.entries(OBJECTS)) {
    it(name, () => mustBeLinear(make, 250))
  }

  it('and the measure finds a quadratic split and an exponential expression', () => {
    const split = (text: string) => text.split(/,(?![^(]*\))/)
    const quadratic = (size: number) => () => void split(pump(COMMAS, size))
    // The size is so large that the time of the compiler does not hide the growth.
    expect(() => mustBeLinear(quadratic, 3000)).to.throw(/times as long/)
    const exponential = (size: number) => () => void /^(?:a+)+$/.test(`${'a'.repeat(size)}b`)
    expect(() => mustBeLinear(exponential, 3)).to.throw(/times as long/)
  })
})
