import { expect } from 'chai'
import { createLog, describeError } from '../../../agent/base/log.ts'
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, closeSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../build/apisix.ts'

describe('log', () => {
  const capture = (level: 'info' | 'debug' = 'info') => {
    const lines: Record<string, unknown>[] = []
    const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
    return { log: createLog({ level }, { write }), lines }
  }

  it('writes one object per line, with the part, and nothing below the configured level', () => {
    const { log, lines } = capture()
    log.child({ part: 'watch' }).info({ pod: 'web-1' }, 'pod ends')
    log.debug('not this')
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include({ level: 'info', part: 'watch', pod: 'web-1', msg: 'pod ends' })
  })

  it('shows no key and no token, up to two levels deep', () => {
    const { log, lines } = capture()
    log.info({ authorization: 'Bearer s3cret' }, 'a')
    log.info({ headers: { 'X-API-KEY': 's3cret', accept: '*/*' } }, 'b')
    log.info({ request: { headers: { 'x-api-key': 's3cret', Authorization: 's3cret' } } }, 'c')
    log.info({ config: { token: 's3cret', password: 's3cret' } }, 'd')
    log.info({ calls: [{ Token: 's3cret' }] }, 'e')
    expect(JSON.stringify(lines)).not.to.include('s3cret')
    expect(lines[1]?.headers).to.deep.equal({ 'X-API-KEY': '<not shown>', accept: '*/*' })
  })

  it('does not change the logged object', () => {
    const { log, lines } = capture()
    const facts = { headers: { token: 's3cret', accept: '*/*' }, list: [1, 'a', null] }
    log.info(facts, 'a')
    expect(facts.headers.token).to.equal('s3cret')
    expect(lines[0]).to.deep.include({
      headers: { token: '<not shown>', accept: '*/*' },
      list: [1, 'a', null]
    })
  })

  it('shows the failure of a call, never the body or the headers of its request', () => {
    const { log, lines } = capture()
    const request = { headers: { 'x-api-key': 's3cret' } }
    const err = Object.assign(new Error('refused'), {
      code: 'ECONNREFUSED',
      config: { data: 's3cret' },
      request
    })
    log.error({ err: new Error('admin call failed', { cause: err }) }, 'failed')
    expect(JSON.stringify(lines)).not.to.include('s3cret')
    expect(lines[0]?.err).to.have.nested.include({
      message: 'admin call failed',
      'cause.code': 'ECONNREFUSED'
    })
    expect(lines[0]?.err).to.have.property('stack')
  })

  it('describes a thrown value that is no Error, and ends a loop of causes', () => {
    expect(describeError('plain')).to.deep.equal({ message: 'plain' })
    expect(describeError({ headers: 's3cret' })).to.deep.equal({ message: 'not an Error object' })
    const loop = new Error('loop')
    loop.cause = loop
    expect(JSON.stringify(describeError(loop)).match(/"message"/g)).to.have.length(5)
  })

  it('keeps the status of an API error', () => {
    expect(describeError(Object.assign(new Error('no'), { status: 403, code: 7 }))).to.include({
      status: 403,
      code: 7
    })
  })
})

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
      const names = ['at first', 'while it was full', 'and more', 'free again', 'after']
      const left = names.map(name => kept().filter(line => line.startsWith(name)).length)
      expect(left[1]).to.be.within(800, 1100)
      expect(dropped()).to.equal(5 + 2000 + 100 + 1 + 1 - kept().length)
      expect(kept()).to.deep.equal(names.flatMap((name, i) => lines(name, left[i] ?? 0)))
    } finally {
      child.kill('SIGKILL')
    }
  })
})
