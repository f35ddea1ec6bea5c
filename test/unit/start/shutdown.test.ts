import { execFile } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { supervise, type Part, type Supervision } from '../../../agent/start/run.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { memoryLog } from '../../build/serve.ts'

const agent = new URL('../../../agent', import.meta.url).href

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))

describe('shutdown', () => {
  const setUp = (differs: Partial<Supervision> = {}) => {
    const { log, lines } = memoryLog()
    const signals = new EventEmitter()
    const steps: string[] = []
    const exits: number[] = []
    const clock = manualClock()
    const part: Part = {
      name: 'watch',
      run: async signal => {
        await untilAborted(signal)
        steps.push('watch ended')
      }
    }
    const code = supervise({
      parts: [part],
      finishMs: 20_000,
      stopPromising: () => void steps.push('stop promising'),
      finishHolds: async () => void steps.push('holds finished'),
      handOver: async () => void steps.push('handed over'),
      close: async () => void steps.push('closed'),
      clock,
      log,
      signals,
      exit: code => void exits.push(code),
      ...differs
    })
    return { code, steps, exits, signals, clock, lines }
  }
  const turn = () => new Promise(setImmediate)

  it('stops in order at a signal: promises, holds, listeners, parts', async () => {
    const { code, steps, signals, lines } = setUp()
    await turn()
    expect(steps).to.deep.equal([])
    signals.emit('SIGTERM', 'SIGTERM')
    expect(await code).to.equal(0)
    expect(steps).to.deep.equal(['stop promising', 'holds finished', 'handed over', 'closed', 'watch ended'])
    expect(lines.at(-1)).to.include({ msg: 'stopped' })
    expect(signals.eventNames(), 'no listener is left').to.deep.equal([])
  })

  for (const [title, name, step, ms, before, after] of [
    [
      'gives held hooks their time limit and no more',
      'SIGINT',
      'finishHolds',
      20_000,
      ['stop promising'],
      ['handed over', 'closed', 'watch ended']
    ],
    [
      'gives other agents two seconds to ask for the last answers, and no more (D7)',
      'SIGTERM',
      'handOver',
      2000,
      ['stop promising', 'holds finished'],
      ['closed', 'watch ended']
    ]
  ] as const)
    it(title, async () => {
      let bound: AbortSignal | undefined
      const { code, steps, signals, clock } = setUp({
        [step]: (signal: AbortSignal) => ((bound = signal), new Promise(() => {}))
      })
      signals.emit(name, name)
      await turn()
      clock.advance(ms - 1)
      await turn()
      expect(bound?.aborted).to.equal(false)
      expect(steps).to.deep.equal(before)
      clock.advance(1)
      expect(await code).to.equal(0)
      expect(bound?.aborted).to.equal(true)
      expect(steps).to.deep.equal([...before, ...after])
    })

  for (const [how, run] of [
    ['returns', async () => {}],
    ['rejects', () => Promise.reject(new Error('lost'))],
    [
      'throws',
      () => {
        throw new Error('lost')
      }
    ]
  ] as const) {
    it(`ends with 1 and the name of a part that ${how}, and releases hooks at once`, async () => {
      const others = setUp({ parts: [{ name: 'loop', run }] })
      expect(await others.code).to.equal(1)
      expect(others.steps).to.deep.equal(['stop promising', 'closed'])
      expect(others.lines[0]).to.include({ level: 'fatal', part: 'loop', msg: 'part ended early' })
    })
  }

  it('continues if a step fails or a part does not end', async () => {
    const { code, steps, signals, clock, lines } = setUp({
      parts: [{ name: 'stuck', run: () => new Promise(() => {}) }],
      stopPromising: () => {
        throw new Error('a bug')
      },
      close: () => new Promise(() => {})
    })
    signals.emit('SIGTERM', 'SIGTERM')
    await turn()
    clock.advance(3000)
    await turn()
    clock.advance(3000)
    expect(await code).to.equal(0)
    expect(steps).to.deep.equal(['holds finished', 'handed over'])
    expect(lines.flatMap(line => line.step ?? [])).to.deep.equal(['stop promising', 'close', 'end parts'])
  })

  it('exits at once at a second signal', async () => {
    const { exits, signals, clock, code } = setUp({ finishHolds: () => new Promise(() => {}) })
    signals.emit('SIGTERM', 'SIGTERM')
    await turn()
    expect(exits).to.deep.equal([])
    signals.emit('SIGTERM', 'SIGTERM')
    expect(exits).to.deep.equal([1])
    clock.advance(20_000)
    await code
  })

  it('treats an uncaught error as the end of the process', async () => {
    const { code, signals, lines } = setUp()
    signals.emit('uncaughtException', new Error('a bug'))
    expect(await code).to.equal(1)
    expect(lines[0]).to.include({ msg: 'uncaught error' })
  })

  it('keeps the process alive for the time limit of a step, and it exits 0', async () => {
    // Nothing but the supervision keeps this process alive, and one of its steps never ends.
    const { stdout } = await promisify(execFile)(process.execPath, [
      ...process.execArgv,
      '--input-type=module',
      '--eval',
      `import { systemClock } from '${agent}/base/clock.ts'
      import { createLog } from '${agent}/base/log.ts'
      import { supervise } from '${agent}/start/run.ts'
      const nothing = async () => {}
      setTimeout(() => process.kill(process.pid, 'SIGTERM'), 1)
      process.exitCode = await supervise({
        parts: [{ name: 'serve', run: signal => new Promise(resolve => (signal.onabort = resolve)) }],
        finishMs: 5000,
        clock: systemClock,
        log: createLog({ level: 'info' }),
        stopPromising: nothing,
        finishHolds: nothing,
        handOver: nothing,
        close: () => new Promise(() => {})
      })`
    ])
    expect(stdout).to.match(/"step":"close".*"msg":"stopped"/s)
  })
})
