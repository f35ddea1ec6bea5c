import { globSync, readFileSync } from 'node:fs'
import { expect } from 'chai'

const decisions = globSync('docs/decisions/[0-9]*.md')
  .filter(file => !file.includes('0000-'))
  .map(file => ({ file, text: readFileSync(file, 'utf8') }))
const index = readFileSync('docs/decisions/README.md', 'utf8')

describe('docs/decisions', () => {
  it('each has a number, a status, a context, a decision and rejected alternatives', () => {
    expect(decisions).not.empty
    for (const { file, text } of decisions) {
      const number = /(\d{4})-/.exec(file)?.[1] ?? ''
      expect(text, file).match(new RegExp(`^# ${number} \\S.*\n\nStatus: (proposed|accepted|replaced)`))
      const parts = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title)
      expect(parts, file).eql(['Context', 'Decision', 'Rejected'])
    }
  })

  it('each has one line in the index, in their order, and a unique number', () => {
    const lines = [...index.matchAll(/^\| \[\d{4}\]\((\S+)\) /gm)].map(([, name]) => name)
    expect(lines).eql(decisions.map(({ file }) => file.slice('docs/decisions/'.length)).toSorted())
    expect(new Set(decisions.map(({ file }) => /\d{4}/.exec(file)?.[0])).size).equal(decisions.length)
  })
})
