import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'

const ROOT = join(import.meta.dirname, '../..')
const HOOK = 'hook'
/** The app of the cluster suite. */
const APP = 'test/cluster/app'

const goIn = (folder: string, program: string, ...args: string[]) =>
  spawnSync(program, args, {
    cwd: join(ROOT, folder),
    env: { ...process.env, GOFLAGS: '-buildvcs=false', CGO_ENABLED: '0' },
    encoding: 'utf8',
    timeout: 5 * 60_000
  })

const go = (...command: [string, ...string[]]) => goIn(HOOK, ...command)

interface TestEvent {
  readonly Action: string
  readonly Test?: string
  readonly Output?: string
}

/** Each Go test becomes one test here, so that the suite prints a single summary. */
describe('the Go code', () => {
  const { stdout, stderr, status } = go('go', 'test', '-count=1', '-json', './...')
  const events = stdout
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as TestEvent)
  const outputOf = (test: string) =>
    events.flatMap(({ Test, Output }) => (Test === test && Output !== undefined ? [Output] : [])).join('')

  for (const { Test, Action } of events) {
    if (Test === undefined || !['pass', 'fail', 'skip'].includes(Action)) continue
    // A Go test that skips itself proves nothing, so it counts as failed.
    it(Test, () => expect(Action, outputOf(Test)).to.equal('pass'))
  }

  it('runs its tests to the end', () => {
    expect(status, stderr).to.equal(0)
    expect(events.filter(({ Test }) => Test !== undefined)).not.to.deep.equal([])
  })

  for (const folder of [HOOK, APP])
    it(`passes vet and gofmt: ${folder}`, () => {
      const vet = goIn(folder, 'go', 'vet', './...')
      expect(vet.status, vet.stderr).to.equal(0)
      expect(goIn(folder, 'gofmt', '-l', '.')).to.include({ stdout: '', status: 0 })
    })

  for (const [folder, module] of [
    [HOOK, 'apisix-drain-hook'],
    [APP, 'app']
  ] as const)
    it(`needs no module but its own: ${folder}`, () => {
      expect(goIn(folder, 'go', 'list', '-m', 'all').stdout).to.equal(`${module}\n`)
    })
})
