import { expect } from 'chai'
import { existsSync, globSync, readFileSync } from 'node:fs'
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

  it('are found by tests that exist, or by cases in YAML', () => {
    const missing = MUTANTS.flatMap(({ name, found }) => {
      if (!('file' in found)) return []
      const files = found.file === 'test/unit/cases.test.ts' ? globSync('test/cases/*.yaml') : [found.file]
      return files.some(file => readFileSync(file, 'utf8').includes(found.title)) ? [] : [name]
    })
    expect(missing).to.deep.equal([])
  })
})

describe('a mutant’s edit', () => {
  const SOURCE = `
export function outer({ given }: { readonly given: number }) {
  const value: number = given
  const { loose } = Object(value)
  if (given) { const twice = 1; void twice } else { const twice = 2; void twice }
  return { loose, property: value * 2 }
}
interface Outer { readonly typed: number; method(): number }
`
  const only = parse(new Map([['a.ts', SOURCE]])).get('a.ts')!
  const edited = (name: string, replace: string) => replaceByName(only, [{ file: 'a.ts', name, replace }])

  it('is an error if it is not of one place, changes nothing, or leaves what does not parse', () => {
    for (const name of ['value', 'outer.absent', 'outer.loose', 'outer.given', 'Outer.typed', 'Outer.method'])
      expect(() => edited(name, '7'), name).to.throw(`a.ts: ${name} is declared 0 times`)
    expect(() => edited('outer.twice', '7')).to.throw('a.ts: outer.twice is declared 2 times')
    expect(() => edited('outer.property', 'value*2')).to.throw('a.ts: outer.property is that already')
    expect(edited('outer.value', '7')).to.equal(SOURCE.replace('= given\n', '= (7)\n'))
    expect(problemsOf(new Map([['a.ts', edited('outer.value', 'given given')]]))).to.not.deep.equal([])
  })
})
