import { expect } from 'chai'
import { formatProblems, helpOf, parseCommand } from '../../../agent/start/cli.ts'
import { rowsOf } from '../../build/rows.ts'

describe('cli', () => {
  for (const { line, means } of rowsOf('cli.yaml', import.meta.url) as readonly {
    line: string
    means: object
  }[])
    it(`apisix-drain ${line}`, () => {
      const command = parseCommand(line === '' ? [] : line.split(' '))
      expect(JSON.parse(JSON.stringify(command))).to.deep.equal(means)
    })

  it('names in the help of one command its options only', () => {
    const of = (name: 'run' | 'doctor' | 'status' | 'plugin') =>
      [...helpOf(name).matchAll(/^ {2}(--\S+)/gm)].map(([, option]) => option)
    expect(of('doctor')).to.deep.equal(['--config', '--json', '--help', '--version'])
    expect(of('run')).to.include('--dry-run').and.not.include('--json')
    expect(helpOf('status')).not.to.include('doctor')
  })

  it('lists problems, one per line', () => {
    expect(formatProblems(['a: b'])).to.equal('the configuration has a problem:\n  - a: b\n')
    expect(formatProblems(['a', 'b'])).to.equal('the configuration has 2 problems:\n  - a\n  - b\n')
  })
})
