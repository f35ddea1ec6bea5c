import { readFileSync, readdirSync, writeFileSync } from 'node:fs'

import { expect } from 'chai'
import { isScalar, parseDocument, visit, type Node } from 'yaml'

import { SUBJECTS } from '../build/subjects.ts'

/**
 * Runs every case of `test/cases`, which has `given`, `now` (default: 0), `expect` and one line of prose. A new case needs no code.
 * `UPDATE=1` rewrites the expected results. Review the diff then.
 */
interface Case {
  readonly case: string
  readonly why: string
  readonly given: never
  readonly now?: number
  readonly expect: unknown
}

const folder = new URL('../cases/', import.meta.url)
const update = process.env.UPDATE === '1'

/** Lists of single words are written in one line. */
const written = (node: Node): Node => {
  visit(node, {
    Seq(_, list) {
      list.flow = list.items.every(item => isScalar(item) && !/\s/.test(String(item.value)))
    }
  })
  return node
}

for (const file of readdirSync(folder).filter(name => name.endsWith('.yaml'))) {
  const subject = SUBJECTS[file.replace(/(-.*)?\.yaml$/, '') as keyof typeof SUBJECTS]
  const document = parseDocument(readFileSync(new URL(file, folder), 'utf8'), { merge: true })
  const cases = document.toJS() as Case[]
  describe(`cases/${file}`, () => {
    it('has a known subject, and every case is complete and has a unique name', () => {
      expect(document.errors).to.deep.equal([])
      expect(subject).to.be.a('function')
      expect(new Set(cases.map(c => c.case)).size).to.equal(cases.length)
      for (const { case: name, why, given } of cases) expect([name, why, given]).to.not.include(undefined)
    })
    cases.forEach((c, index) =>
      it(c.case, () => {
        const told = subject(c.given, c.now ?? 0)
        if (update) document.setIn([index, 'expect'], written(document.createNode(told)))
        else expect(told).to.deep.equal(c.expect)
      })
    )
    after(() => {
      if (update) writeFileSync(new URL(file, folder), document.toString({ lineWidth: 110 }))
    })
  })
}
