import { expect } from 'chai'
import * as fc from 'fast-check'
import { createLineSplitter } from '../../../../agent/kubernetes/transport/lines.ts'

/** Feeds the bytes in chunks that are cut at these positions. Returns the lines. */
function split(bytes: Buffer, cuts: readonly number[]): string[] {
  const lines: string[] = []
  const feed = createLineSplitter(line => lines.push(line))
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

  it('are bounded', () => {
    const feed = createLineSplitter(() => {}, 10)
    feed(Buffer.from('123456\n123456'))
    expect(() => feed(Buffer.from('12345'))).to.throw(RangeError, 'longer than 10 bytes')
  })
})
