import { expect } from 'chai'
import * as fc from 'fast-check'
import {
  createLineSplitter,
  identityOf,
  objectReader,
  readLine
} from '../../../../agent/kubernetes/transport/objects.ts'

const read = (value: unknown): unknown => readLine(Buffer.from(JSON.stringify(value)))

const MANAGED = [
  {
    manager: 'kubelet',
    fieldsV1: { 'f:status': { 'k:{"type":"Ready"}': { '.': {}, 'f:x': [[1], ['\\"]']] } } }
  }
]

describe('without managedFields', () => {
  it('a pod is otherwise unchanged', () => {
    const pod = { metadata: { name: 'web-1', labels: { app: 'wéb' } }, spec: { x: [1, { y: ']' }] } }
    const sent = { ...pod, metadata: { ...pod.metadata, managedFields: MANAGED } }
    expect(read({ type: 'ADDED', object: sent })).to.deep.equal({ type: 'ADDED', object: pod })
  })

  it('every pod of a list is otherwise unchanged', () => {
    const items = ['a', 'b'].map(name => ({ metadata: { name, managedFields: MANAGED }, status: {} }))
    expect(read({ items })).to.deep.equal({
      items: ['a', 'b'].map(name => ({ metadata: { name }, status: {} }))
    })
  })

  it('the same text inside a string stays', () => {
    const value = { a: 1, note: ',"managedFields":[', annotations: { b: '{"a":1,"managedFields":[]}' } }
    expect(read(value)).to.deep.equal(value)
  })

  it('truncated JSON is not read', () => {
    const cut = '{"a":1,"managedFields":[{"b":"]"'
    expect(() => readLine(Buffer.from(cut))).to.throw(SyntaxError)
  })

  it('any JSON keeps its other values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (before, managed) => {
        const list = Array.isArray(managed) ? managed : [managed]
        expect(read({ before, managedFields: list, after: before })).to.deep.equal(
          JSON.parse(JSON.stringify({ before, after: before }))
        )
      })
    )
  })
})

describe('an object of the API server', () => {
  const metadata = { name: 'web-1', generateName: 'web-', namespace: 'shop', uid: 'u1', resourceVersion: '7' }
  const large: Readonly<Record<string, object>> = {
    'of 5 MB': { metadata: { ...metadata, labels: { a: 'x'.repeat(5e6) } } },
    'with 60,000 containers': {
      metadata,
      spec: { containers: Array.from({ length: 60_000 }, () => ({ ports: [] })) }
    },
    'with 100,000 labels': {
      metadata: {
        ...metadata,
        labels: Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, '']))
      }
    }
  }
  for (const [what, object] of Object.entries(large))
    it(`${what} is not read, and its watch and its list go on`, () => {
      const event = readLine(Buffer.from(JSON.stringify({ type: 'MODIFIED', object })))
      expect(event).to.deep.include({ type: 'MODIFIED' })
      const small = { metadata: { ...metadata, uid: 'u2' } }
      const seen: unknown[] = []
      const reader = objectReader(item => seen.push(item))
      reader.write(
        Buffer.from(JSON.stringify({ items: [small, object, small], metadata: { continue: 'c' } }))
      )
      expect(reader.end()).to.deep.include({ metadata: { continue: 'c' } })
      expect(seen.map(identityOf)).to.deep.equal([
        { name: 'web-1', namespace: 'shop', uid: 'u2' },
        undefined,
        { name: 'web-1', namespace: 'shop', uid: 'u2' }
      ])
      for (const cut of [(event as { object: unknown }).object, seen[1]])
        expect(cut).to.deep.include({ metadata })
    })
})

/** Feeds the bytes in chunks that are cut at these positions. Returns the lines. */
function split(bytes: Buffer, cuts: readonly number[]): string[] {
  const lines: string[] = []
  const feed = createLineSplitter(line => lines.push(line.toString()))
  const places = [...new Set(cuts.map(cut => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  let from = 0
  for (const place of [...places, bytes.length]) {
    feed(bytes.subarray(from, place))
    from = place
  }
  return lines
}

describe('watch: lines', () => {
  it('are whole wherever chunks end, even in the middle of a character', () => {
    const line = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
      .filter(text => !/[\n\r]/.test(text))
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 12 }), (lines, cuts) => {
        const bytes = Buffer.from(lines.map(text => `${text}\n`).join(''))
        expect(split(bytes, cuts)).to.deep.equal(lines)
      }),
      { numRuns: 500 }
    )
  })

  it('are split at newlines only: Unicode separators are part of a line', () => {
    expect(split(Buffer.from('a\u2028b\u2029c\nd\n'), [2, 3])).to.deep.equal(['a\u2028b\u2029c', 'd'])
  })

  it('that are empty or unfinished are not reported', () => {
    expect(split(Buffer.from('\n\r\na\n\nb'), [])).to.deep.equal(['a'])
  })

  it('are bounded: of a long line only a beginning is kept', () => {
    const lines: string[] = []
    const feed = createLineSplitter(line => lines.push(line.toString()), 10)
    for (const chunk of ['123456\n123456', '789012', '345678\n', '1\n']) feed(Buffer.from(chunk))
    expect(lines).to.deep.equal(['123456', '123456789012', '1'])
  })
})
