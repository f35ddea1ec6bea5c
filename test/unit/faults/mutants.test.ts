import { expect } from 'chai'
import { existsSync, readFileSync } from 'node:fs'
import { MUTANTS } from '../../faults/mutant-list.ts'
import { replaceInLua } from '../../faults/lua-edit.ts'
import { parse, replaceByName } from '../../faults/replace-by-name.ts'

const AGENT = new URL('../../../agent/', import.meta.url)
const problemsOf = (texts: ReadonlyMap<string, string>) =>
  [...parse(texts)].flatMap(([name, { problems }]) => problems.map(problem => `${name}: ${problem}`))

describe('mutants', () => {
  it('change existing names, and leave code that parses', () => {
    const files = new Set(MUTANTS.flatMap(({ edits = [] }) => edits.map(({ file }) => file)))
    const agent = parse(new Map([...files].map(file => [file, readFileSync(new URL(file, AGENT), 'utf8')])))
    const stale: string[] = []
    const mutated = new Map<string, string>()
    for (const { name, edits = [], lua = [] } of MUTANTS) {
      for (const edit of lua)
        try {
          replaceInLua(edit)
        } catch (error) {
          stale.push(`${name}: ${(error as Error).message}`)
        }
      for (const [file, own] of Map.groupBy(edits, edit => edit.file))
        try {
          mutated.set(`${name}: ${file}`, replaceByName(agent.get(file)!, own))
        } catch (error) {
          stale.push(`${name}: ${(error as Error).message}`)
        }
    }
    expect(stale).to.deep.equal([])
    expect(mutated.size).to.be.greaterThan(MUTANTS.filter(({ edits }) => edits).length)
    expect(problemsOf(mutated)).to.deep.equal([])
  })

  it('import files that exist', () => {
    const missing = MUTANTS.flatMap(({ name, edits = [] }) =>
      edits.flatMap(({ file, imports = [] }) =>
        imports.flatMap(line => {
          const [, path = ''] = /from '(\.[^']+)'/.exec(line) ?? []
          return path === '' || existsSync(new URL(path, new URL(file, AGENT))) ? [] : [`${name}: ${path}`]
        })
      )
    )
    expect(missing).to.deep.equal([])
  })

  it('are found by tests that exist', () => {
    const missing = MUTANTS.flatMap(({ name, found }) => {
      if (!('file' in found)) return []
      const text = readFileSync(new URL(`../../../${found.file}`, import.meta.url), 'utf8')
      const titles = [...text.matchAll(/\b(?:it|test)\(\s*(['"`])(.*?)\1/g)].map(([, , title = '']) => title)
      return titles.some(title => title.includes(found.title)) ? [] : [name]
    })
    expect(missing).to.deep.equal([])
  })
})

describe('a mutant’s edit', () => {
  const SOURCE = `
export function outer({ given }: { readonly given: number }) {
  const value: number = given
  const { loose } = Object(value)
  const arrow = (n: number) => n + value
  async function inner() {
    const value = 2
    return value
  }
  if (given) { const twice = 1; arrow(twice) } else { const twice = 2; arrow(twice) }
  return { loose, property: value * 2, method() { return 1 }, call: async () => { await inner() }, get it() { return 3 } }
}
interface Outer { readonly typed: number; method(): number }
`
  const only = parse(new Map([['a.ts', SOURCE]])).get('a.ts')!
  const edited = (name: string, replace: string, imports: readonly string[] = []) =>
    replaceByName(only, [{ file: 'a.ts', name, replace, imports }])
  const swapped = (before: string, after: string) => SOURCE.replace(before, () => after)

  it('replaces the value of a variable, and no other of that name', () => {
    expect(edited('outer.value', '7')).to.equal(swapped('= given\n', '= (7)\n'))
    expect(edited('outer.inner.value', '7')).to.equal(swapped('value = 2', 'value = (7)'))
  })

  it('replaces the value of a property', () => {
    expect(edited('outer.property', '7')).to.equal(swapped('value * 2', '(7)'))
  })

  it('replaces the whole body of a function by its new return value', () => {
    expect(edited('outer.arrow', 'n')).to.equal(swapped('n + value', '(n)'))
    expect(edited('outer.method', '7')).to.equal(swapped('{ return 1 }', '{ return (7) }'))
    expect(edited('outer.it', '7')).to.equal(swapped('{ return 3 }', '{ return (7) }'))
    expect(edited('outer', '7')).to.match(/number \}\) \{ return \(7\) \}\ninterface/)
  })

  it('replaces the whole body of a function by a block', () => {
    expect(edited('outer.arrow', '{ throw n }')).to.equal(swapped('n + value', '{ throw n }'))
    expect(edited('outer.call', '{}')).to.equal(swapped('{ await inner() }', '{}'))
  })

  it('makes several changes at once', () => {
    const both = ['outer.property', 'outer.value'].map(name => ({ file: 'a.ts', name, replace: '7' }))
    const after = swapped('= given\n', '= (7)\n').replace('value * 2', '(7)')
    expect(replaceByName(only, both)).to.equal(after)
    expect(replaceByName(only, both.toReversed())).to.equal(after)
  })

  it('imports what it needs', () => {
    const text = edited('outer.value', 'seven', ["import { seven } from './seven.ts'"])
    expect(text).to.equal(`import { seven } from './seven.ts'; ${swapped('= given\n', '= (seven)\n')}`)
    expect(problemsOf(new Map([['a.ts', text]]))).to.deep.equal([])
  })

  it('is an error if nothing, or nothing with a value, has that name', () => {
    for (const name of ['value', 'outer.absent', 'outer.loose', 'outer.given', 'Outer.typed', 'Outer.method'])
      expect(() => edited(name, '7'), name).to.throw(`a.ts: ${name} is declared 0 times`)
  })

  it('is an error if two declarations have that name', () => {
    expect(() => edited('outer.twice', '7')).to.throw('a.ts: outer.twice is declared 2 times')
  })

  it('is an error if it changes nothing', () => {
    expect(() => edited('outer.property', 'value*2')).to.throw('a.ts: outer.property is that already')
  })

  it('is an error if the result does not parse', () => {
    expect(problemsOf(new Map([['a.ts', edited('outer.value', 'given given')]]))).to.not.deep.equal([])
  })
})
