import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'

const SOURCES = join(import.meta.dirname, '../../hook')

const go = (program: string, ...args: string[]) =>
  spawnSync(program, args, {
    cwd: SOURCES,
    env: { ...process.env, GOFLAGS: '-buildvcs=false', CGO_ENABLED: '0' },
    encoding: 'utf8',
    timeout: 5 * 60_000
  })

interface TestEvent {
  readonly Action: string
  readonly Test?: string
  readonly Output?: string
}

/** Each test of Go is one of ours, so that the suite has one closing line. */
describe('hook, in Go', () => {
  const { stdout, stderr, status } = go('go', 'test', '-count=1', '-json', './...')
  const events = stdout
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as TestEvent)
  const outputOf = (test: string) =>
    events.flatMap(({ Test, Output }) => (Test === test && Output !== undefined ? [Output] : [])).join('')

  for (const { Test, Action } of events) {
    if (Test === undefined || !['pass', 'fail', 'skip'].includes(Action)) continue
    // One that skips itself has not shown anything: it fails here.
    it(Test, () => expect(Action, outputOf(Test)).to.equal('pass'))
  }

  it('has run to its end', () => {
    expect(status, stderr).to.equal(0)
    expect(events.filter(({ Test }) => Test !== undefined)).not.to.deep.equal([])
  })

  it('is clean for vet and gofmt', () => {
    const vet = go('go', 'vet', './...')
    expect(vet.status, vet.stderr).to.equal(0)
    expect(go('gofmt', '-l', '.')).to.include({ stdout: '', status: 0 })
  })

  it('needs no module but its own', () => {
    expect(go('go', 'list', '-m', 'all').stdout).to.equal('apisix-drain-hook\n')
  })
})
