import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { steps } from '../../build/getting-started.ts'

const { PATH } = process.env
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

  // D11
  for (const written of ['edd1c9', '"2024"', "'0x1F'"])
    it(`reads the key of the Admin API from the values of APISIX: ${written}`, () => {
      const [command = ''] = steps()[1]?.commands ?? []
      const values = `apisix:\n  admin:\n    credentials:\n      admin: ${written}\n      viewer: other\n`
      const script = `helm() { printf %s "$VALUES"; }\n${command}\nprintf %s "$ADMIN_KEY"`
      const { stdout } = spawnSync('bash', ['-c', script], {
        encoding: 'utf8',
        env: { VALUES: values, PATH }
      })
      expect(stdout).to.equal(written.replaceAll(/["']/g, ''))
    })
})
