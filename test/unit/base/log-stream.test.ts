import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, closeSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { until } from '../../build/apisix.ts'

const SOURCE = new URL('../../../agent/base/log.ts', import.meta.url).href
/** A program that logs lines of a kilobyte to standard output, and reports when it has handed over all of them. */
const WRITER = `
  const { createLog } = await import(${JSON.stringify(SOURCE)})
  const log = createLog({ level: 'info' })
  process.on('message', ({ count, name }) => {
    for (let i = 0; i < count; i++) log.info({ x: 'x'.repeat(1000) }, name + ' ' + i)
    process.send(name)
  })
  process.send('it runs')`
const FULL_BYTES = 8 * 1024
/** Limits files to 8 kB, until the limit is lifted. Then a write beyond 8 kB fails as on a full disk (with EFBIG). */
const FULL = 'ulimit -S -f 8; exec "$0" --input-type=module -e "$1"'

interface Line {
  readonly msg: string
  readonly lines?: number
}

describe('the stream of the log', () => {
  let folder: string
  let file: number
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'apisix-drain-log-'))
    file = openSync(join(folder, 'log'), 'a')
  })
  after(() => {
    closeSync(file)
    rmSync(folder, { recursive: true })
  })

  const all = () =>
    readFileSync(join(folder, 'log'), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line) as Line)
  const kept = () => all().flatMap(({ msg, lines }) => (lines === undefined ? [msg] : []))
  const dropped = () => all().find(({ msg }) => msg === 'lines of the log could not be written')?.lines ?? 0
  const lines = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`)

  it('waits for space, reports how much was dropped meanwhile, and continues', async () => {
    const child = spawn('bash', ['-c', FULL, process.execPath, WRITER], {
      stdio: ['ignore', file, 'inherit', 'ipc']
    })
    const heard: unknown[] = []
    child.on('message', message => void heard.push(message))
    const written = (name: string) => until(name, () => heard.includes(name))
    const write = async (name: string, count: number) => {
      child.send({ count, name })
      await written(name)
    }
    try {
      await written('it runs')
      await write('at first', 5)
      await until('they are written', () => kept().length === 5)
      // These lines are twice the size of the queue, so half of them are dropped.
      await write('while it was full', 2000)
      // Lines that reach the file free space in the queue for some more lines.
      await until('the file is full', () => statSync(join(folder, 'log')).size === FULL_BYTES)
      await write('and more', 100)
      expect(dropped()).to.equal(0)

      await promisify(execFile)('prlimit', ['--pid', String(child.pid), '--fsize=unlimited'])
      await write('free again', 1)
      await until('it says what was dropped', () => dropped() > 0)
      await write('after', 1)
      await until('it goes on', () => kept().at(-1) === 'after 0')
      // The log drops the newest lines, except those for which space became free. It must not lose, split or reorder the others.
      const full = kept().filter(line => line.startsWith('while it was full')).length
      const more = kept().filter(line => line.startsWith('and more')).length
      expect(full).to.be.within(800, 1100)
      expect(dropped()).to.equal(2000 - full + 100 - more + 1)
      expect(kept()).to.deep.equal([
        ...lines('at first', 5),
        ...lines('while it was full', full),
        ...lines('and more', more),
        'after 0'
      ])
    } finally {
      child.kill('SIGKILL')
    }
  })
})
