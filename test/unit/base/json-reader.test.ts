import { expect } from 'chai'
import * as fc from 'fast-check'
import { createJsonReader, readJson, TooLong } from '../../../agent/base/read.ts'

/** Reads a text in chunks that are cut at these positions. */
function read(text: string, cuts: readonly number[] = []): unknown {
  const bytes = Buffer.from(text)
  const reader = createJsonReader()
  const places = [...cuts.map(cut => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  places.forEach((place, i) => reader.write(bytes.subarray(places[i - 1] ?? 0, place)))
  return reader.end()
}
const orBad = (parse: () => unknown): unknown => {
  try {
    return parse()
  } catch (error) {
    expect(error).to.be.instanceOf(SyntaxError)
    return 'not JSON'
  }
}

describe('the reader of JSON', () => {
  it('reads what JSON.parse reads, wherever chunks end', () => {
    fc.assert(
      fc.property(fc.json(), fc.array(fc.nat(), { maxLength: 8 }), (text, cuts) => {
        expect(read(text, cuts)).to.deep.equal(JSON.parse(text))
      }),
      { numRuns: 1000 }
    )
  })

  it('refuses what JSON.parse refuses', () => {
    const parts = ['{', '}', '[', ']', ',', ':', '"', '"a"', '1', ' ', '\\', 'null', '{"a":[', 'é']
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 12 }), all => {
        const text = all.join('')
        expect(orBad(() => read(text))).to.deep.equal(orBad(() => JSON.parse(text)))
      }),
      { numRuns: 5000 }
    )
  })

  it('reads many items, and gives each one away when it has come', () => {
    const items = Array.from({ length: 9000 }, (_, i) => ({ i, text: '],"' }))
    const text = JSON.stringify({ total: 9000, list: items, none: [] })
    const seen: unknown[] = []
    const each = (item: unknown) => (seen.push(item), 0)
    const value = readJson(text, { each }) as { list: unknown[] }
    expect(seen).to.deep.equal(items)
    expect(value).to.deep.equal({ total: 9000, list: items.map(() => 0), none: [] })
    expect(() => readJson(text.replace('"none":[]', '"none":[],'))).to.throw(SyntaxError)
    expect(() => readJson(`[${'1,'.repeat(9000)}]`)).to.throw(SyntaxError)
  })

  it('has a limit for bytes, levels, values and items, and names it', () => {
    const refused: readonly (readonly [string, string])[] = [
      [`"${'x'.repeat(5e6)}"`, 'more than 4194304 bytes in one value'],
      [`["${'x'.repeat(5e6)}"]`, 'more than 4194304 bytes in one value'],
      ['['.repeat(200), 'more than 100 levels'],
      [`{"a":${'{"a":'.repeat(200)}`, 'more than 100 levels'],
      [`[{${'"a":1,'.repeat(60_000)}"a":1}]`, 'more than 100000 values in one value'],
      [`{"a":{"b":[${'1,'.repeat(120_000)}1]}}`, 'more than 100000 values in one value'],
      [`[${'1,'.repeat(120_000)}1]`, 'more than 10000 items']
    ]
    for (const [text, why] of refused) expect(() => readJson(text)).to.throw(TooLong, why)
  })

  it('replaces an item over the limits alone, if the caller says so', () => {
    const large = [
      `"${'x'.repeat(5e6)}"`,
      `[${'1,'.repeat(120_000)}1]`,
      `${'['.repeat(200)}${']'.repeat(200)}`
    ]
    const beyond = (beginning: Buffer) => ({ beginning: beginning.toString('utf8', 0, 3) })
    const text = `{"items":[1,2,${large.join(',3,')},4]}`
    expect(readJson(text, { beyond })).to.deep.equal({
      items: [1, 2, { beginning: '"xx' }, 3, { beginning: '[1,' }, 3, { beginning: '[[[' }, 4]
    })
  })
})
