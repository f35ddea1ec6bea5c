import { expect } from 'chai'
import * as fc from 'fast-check'
import { readJson, TooLong } from '../../../agent/base/read.ts'
import { hooksOf } from '../../../agent/doctor/checks/check-hooks.ts'
import { full, gatewayState, polled } from '../../../agent/gateway/apisix/barrier-wire.ts'
import { holdersOf } from '../../../agent/gateway/apisix/holders.ts'
import { wordOf } from '../../../agent/gateway/barrier/barrier-reading.ts'
import { review } from '../../../agent/hook/inject/inject.ts'
import { parseQuery } from '../../../agent/hook/identify.ts'
import { toEndpointFact } from '../../../agent/kubernetes/facts/slice-store.ts'
import { toGatewayPod } from '../../../agent/kubernetes/facts/gateway-store.ts'
import { toPodFact } from '../../../agent/kubernetes/facts/pod-fact.ts'
import { toServiceFact } from '../../../agent/kubernetes/facts/service-store.ts'
import { parseWatchEvent } from '../../../agent/kubernetes/reflect/follow.ts'
import { objectReader } from '../../../agent/kubernetes/transport/objects.ts'
import { readOptions } from '../../../agent/rules/drain/annotations.ts'
import { claimsOf } from '../../../agent/rules/members/members.ts'
import { rowsOf } from '../../build/rows.ts'
import { INJECT } from './inject.ts'

/** `FUZZ=200000` plays this many inputs, and measures each. The suite plays fewer, the same each time, and measures none: it counts coverage. */
const FUZZ = process.env['FUZZ']
const RUNS = Number(FUZZ ?? 4000)
/** The longest that one input may stop the loop, in ms of this thread's CPU. */
const MOST_MS = FUZZ === undefined ? Infinity : 50

const facts = (object: unknown): void => {
  const pod = toPodFact(object)
  if (pod) readOptions(pod.annotations)
  const service = toServiceFact(object)
  if (service) claimsOf(service)
  toEndpointFact(object)
  toGatewayPod(object)
  hooksOf(object)
}
const holders = (value: unknown) =>
  holdersOf({ resource: 'routes', id: '1', revision: 1, value: (value ?? {}) as Record<string, unknown> })

/** Texts that the readers know. */
const SAMPLES = [
  ...(rowsOf('./samples.yaml', import.meta.url) as object[]).map(value => JSON.stringify(value)),
  'namespace=shop&pod=web-1&uid=u1&timeout=5s'
]

/** Every reader of what comes from outside. */
const READERS: Readonly<Record<string, (text: Buffer) => unknown>> = {
  'a line of a watch': text => {
    const event = parseWatchEvent('/pods', text)
    if (event.kind === 'set') facts(event.object)
  },
  'a list of the API server': text => {
    const reader = objectReader(facts)
    reader.write(text)
    reader.end()
  },
  'an answer of a gateway': text => {
    const answer = readJson(text)
    gatewayState.safeParse(answer)
    full.safeParse(answer)
    const { data } = polled.safeParse(answer)
    if (data) wordOf(data.entries.map(({ word }) => word))
  },
  'an answer of a Control API or the Admin API': text => readJson(text, { each: holders }),
  'a review': text => review(readJson(text), INJECT),
  'the query of a hook': text => parseQuery(new URLSearchParams(text.toString('latin1', 0, 16_384)))
}

const VALUES = [
  'null',
  '[]',
  '{}',
  '-1',
  '1e999',
  '""',
  'true',
  '[[[[]]]]',
  '{"a":{}}',
  '"\\u0000\\n\u001b[31m"',
  '9007199254740993',
  '"__proto__"'
]
/** Changes a text that a reader knows: bytes, values, parts that repeat, the end. */
const mutated = fc
  .record({
    sample: fc.constantFrom(...SAMPLES),
    edits: fc.array(
      fc.record({
        at: fc.nat(),
        length: fc.nat(40),
        how: fc.constantFrom('value', 'value', 'byte', 'repeat', 'cut', 'key'),
        value: fc.constantFrom(...VALUES),
        times: fc.oneof({ weight: 60, arbitrary: fc.nat(30) }, { weight: 1, arbitrary: fc.nat(60_000) })
      }),
      { minLength: 1, maxLength: 4 }
    )
  })
  .map(({ sample, edits }) => {
    let text = sample
    for (const { at: seed, length, how, value, times } of edits) {
      const at = seed % (text.length + 1)
      const part = text.slice(at, at + length)
      if (how === 'value')
        text = text.slice(0, at) + text.slice(at).replace(/"[^"]*"|\d+|true|\[\]/, () => value)
      else if (how === 'key')
        text =
          text.slice(0, at) + text.slice(at).replace('{', () => `{"__proto__":${value},"k${seed}":${value},`)
      else if (how === 'byte')
        text = text.slice(0, at) + String.fromCharCode(seed & 0xff) + text.slice(at + 1)
      else if (how === 'repeat')
        text = text.slice(0, at) + part.repeat(Math.min(times, 6e6 / (length + 1))) + text.slice(at)
      else text = text.slice(0, at)
    }
    return Buffer.from(text)
  })

const cpuMs = (run: () => void): number => {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

describe(`${RUNS} inputs over all readers of what comes from outside`, function () {
  this.timeout(3_600_000)
  let longest = 0
  for (const [name, read] of Object.entries(READERS))
    it(`${name}: none fails in a way that is not foreseen`, () => {
      const run = (text: Buffer) => () => {
        try {
          read(text)
        } catch (error) {
          const isForeseen = error instanceof SyntaxError || error instanceof TooLong
          if (!isForeseen && (error as Error).name !== 'CorruptLine') throw error
        }
      }
      fc.assert(
        fc.property(mutated, text => {
          let ms = cpuMs(run(text))
          // The compiler and the collector of garbage may take part in one run.
          for (let i = 0; i < 4 && ms > MOST_MS; i++) ms = Math.min(ms, cpuMs(run(text)))
          longest = Math.max(longest, ms)
          expect(ms).to.be.below(MOST_MS)
        }),
        {
          numRuns: Math.ceil(RUNS / Object.keys(READERS).length),
          endOnFailure: true,
          ...(FUZZ === undefined && { seed: 1 })
        }
      )
    })
  it('a gateway answers with the most wrong items that the reader lets through: the first one ends it', () => {
    const inflight = { requests: 0, long: 0 }
    const state = { uid: 'u', ip: '10.0.0.1', state: 'sealed', ttl: 1, bypasses: 0, late: 0, inflight }
    const ways = { asked: 0, found: [], more: 0 }
    const word = { said: 1, asked: 1, places: 0, succeeded: [], hidden: 0, others: [], cut: 0, ways }
    const wrong = Array.from({ length: 10_000 }, () => ({}))
    const entryWith = (part: object) => ({ ...state, word: { ...word, sole: [], ...part } })
    for (const entries of [
      wrong,
      [entryWith({ sole: wrong })],
      [entryWith({ others: wrong })],
      [entryWith({ ways: { ...ways, found: wrong } })],
      Array<object>(100).fill(entryWith({ sole: wrong.slice(0, 900) }))
    ])
      for (const schema of [polled, full, gatewayState]) {
        const issues = schema.safeParse({ entries }).error?.issues ?? []
        expect(issues.filter(({ path }) => path[0] === 'entries')).to.have.lengthOf(1)
      }
  })
  after(() => {
    if (FUZZ !== undefined) console.log(`the longest input took ${longest.toFixed(1)} ms`)
  })
})
