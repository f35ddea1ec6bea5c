import { expect } from 'chai'
import { circles, importsOf } from '../../../scripts/rooms/imports.ts'

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
    const found = ['/drain/a', '/plan/b', '/c/c', '/plan/d', '/plan/e', '/f/f'].map(path => `agent${path}.ts`)
    expect(importsOf('agent/plan/plan.ts', source)).eql(found)
  })

  it('finds a cycle of any length, once', () => {
    const imports = { a: ['b'], b: ['c', 'x'], c: ['a'], x: ['y'], y: [], z: ['z'] }
    expect(circles(new Map(Object.entries(imports)))).eql([['a', 'b', 'c'], ['z']])
    expect(circles(new Map(Object.entries({ a: ['b', 'c'], b: ['c'], c: [] })))).eql([])
  })
})
