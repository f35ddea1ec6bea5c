import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { ANSWERS } from '../../../agent/report/metrics/metric-labels.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

/** The helper is a program of its own, so no compiler sees a new word of the agent there. */
describe('apisix-drain-hook', () => {
  it('has a case in its tests for each result of an answer', () => {
    const cases = read('hook/answer_test.go')
    expect(Object.keys(ANSWERS).filter(result => !cases.includes(`"result":"${result}"`))).to.deep.equal([])
  })
})
