import { expect } from 'chai'
import { figuresOf, overBudget } from '../../../scripts/rooms/figures.ts'
import { circles, importsOf } from '../../../scripts/rooms/imports.ts'
import { pluginProblems } from '../../../scripts/rooms/plugin-law.ts'

describe('the law of imports', () => {
  it('reads every import, including imports of types', () => {
    const source = [
      "import fs from 'node:fs'",
      "import { a } from '../drain/a.ts'",
      "import type { B } from './b.ts'",
      "import {\n  c,\n  type C\n} from '../c/c.ts'",
      "export { d } from './d.ts'",
      "import './e.ts'",
      "const f = await import('../f/f.ts')"
    ].join('\n')
    const found = ['/drain/a', '/plan/b', '/c/c', '/plan/d', '/plan/e', '/f/f'].map(
      path => `agent/rules${path}.ts`
    )
    expect(importsOf('agent/rules/plan/plan.ts', source)).eql(found)
  })

  it('finds a cycle of any length, once', () => {
    const imports = { a: ['b'], b: ['c', 'x'], c: ['a'], x: ['y'], y: [], z: ['z'] }
    expect(circles(new Map(Object.entries(imports)))).eql([['a', 'b', 'c'], ['z']])
    expect(circles(new Map(Object.entries({ a: ['b', 'c'], b: ['c'], c: [] })))).eql([])
  })
})

describe('the law of the plugin', () => {
  const law = { below: { holds: '', files: 'clock json' }, above: { holds: '', files: 'api' } }

  it('allows to require files of the same room and of rooms above', () => {
    const sources = new Map([
      ['clock', ''],
      ['json', 'local clock = require("apisix.drain.clock")'],
      ['api', 'local json = require("apisix.drain.json")']
    ])
    expect(pluginProblems(sources, law)).eql([])
  })

  it('names each file that breaks it', () => {
    const sources = new Map([
      ['clock', 'local api = require("apisix.drain.api")'],
      ['api', ''],
      ['stray', 'local ffi = require("ffi")']
    ])
    expect(pluginProblems(sources, law)).eql([
      'stray.lua: in no room',
      'json.lua: in a room, and does not exist',
      'stray.lua uses ffi, outside of the room host',
      'clock.lua requires api.lua, of a room below its own'
    ])
    expect(pluginProblems(new Map([['a', '']]), { x: { holds: '', files: 'a a' } })).eql([
      'a.lua: in two rooms'
    ])
  })
})

describe('the budget', () => {
  it('is measured, by wing and by part', () => {
    const figures = figuresOf(new URL('../../..', import.meta.url).pathname, ['base'])
    for (const [name, value] of Object.entries(figures)) expect(value, name).above(0)
    expect(figures['agent: lines']).above(figures['agent/base: lines'] ?? Infinity)
  })

  it('names what is above it, and what has none', () => {
    expect(overBudget({ settings: 40, metrics: 33 }, { settings: 40, metrics: 33 })).eql([])
    const [above = '', none, ...more] = overBudget({ settings: 41, words: 1 }, { settings: 40 })
    expect(above).match(
      /^settings: 41, and the budget is 40 .*take something away; raise it only with a decision record/
    )
    expect(none).eql('words: has no budget in scripts/rooms/budget.ts')
    expect(more).eql([])
  })
})
