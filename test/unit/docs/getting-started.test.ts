import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { steps } from '../../build/getting-started.ts'

const page = readFileSync(new URL('../../../docs/first-drain.md', import.meta.url), 'utf8')

describe('getting started', () => {
  it('has five steps, each with its commands', () => {
    expect(steps().map(({ title }) => title.slice(0, 2))).to.deep.equal(['1.', '2.', '3.', '4.', '5.'])
    for (const { commands } of steps()) expect(commands).not.to.deep.equal([])
  })

  it('has a log with exactly these commands; UPDATE=1 npm run test:cluster writes it', () => {
    const shown = page
      .split(/^## /m)
      .slice(1)
      .map(part => [...part.matchAll(/^\$ ((?:.*\\\n)*.*)/gm)].map(([, command]) => command))
    expect(shown).to.deep.equal(steps().map(({ commands }) => commands))
  })
})
