import { readFileSync } from 'node:fs'
import { expect } from 'chai'

const rows = readFileSync('docs/answers.md', 'utf8')
  .split('\n')
  .filter(line => /^\| P\d/.test(line))
  .map(line => line.split('|').map(cell => cell.trim()))

describe('docs/answers.md', () => {
  it('has a row for each fault that made an answer untrue', () => {
    const ids = new Set(rows.map(([, id]) => id))
    for (let n = 1; n <= 23; n++) expect(ids).to.include(`P${n}`)
  })

  it('names existing tests, and marks each fault without a test as open, or gives the reason', () => {
    for (const [, id, , state = '', test = ''] of rows) {
      const [, file, title] = /^`([^`]+)`: (.+)$/.exec(test) ?? []
      if (file === undefined || title === undefined) {
        expect(state, id).to.match(/open|said in the docs/)
        continue
      }
      expect(readFileSync(file, 'utf8'), `${id}: ${file}`).to.include(title)
    }
  })
})
