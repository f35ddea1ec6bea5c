import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { ANSWERS } from '../../../agent/report/metrics/metric-registry.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

/** The helper is a separate program. So no compiler reports that it lacks a new word of the agent's answers. */
describe('apisix-drain-hook', () => {
  it('has a case in its tests for each result of an answer', () => {
    const cases = read('hook/answer_test.go')
    expect(Object.keys(ANSWERS).filter(result => !cases.includes(`"result":"${result}"`))).to.deep.equal([])
  })
})
