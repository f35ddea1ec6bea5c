import { expect } from 'chai'
import { sources } from './messages.ts'

const decisions = sources('docs/decisions/[0-9]*.md').filter(({ file }) => !file.includes('0000-'))
const [index] = sources('docs/decisions/README.md')

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
    const lines = [...(index?.text ?? '').matchAll(/^\| \[\d{4}\]\((\S+)\) /gm)].map(([, name]) => name)
    expect(lines).eql(decisions.map(({ file }) => file.slice('docs/decisions/'.length)).toSorted())
    expect(new Set(decisions.map(({ file }) => /\d{4}/.exec(file)?.[0])).size).equal(decisions.length)
  })
})
