import { expect } from 'chai'
import { watchMode } from '../../../../agent/gateway/inventory/mode-watch.ts'
import { manualClock } from '../../../build/manual-clock.ts'
import { memoryLog } from '../../../build/serve.ts'

describe('the mode', () => {
  const start = (answers: (boolean | Error)[]) => {
    const clock = manualClock()
    const { log, lines } = memoryLog()
    let asked = 0
    const admin = {
      standalone: () => {
        const answer = answers[Math.min(asked++, answers.length - 1)]
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ? {} : undefined)
      }
    }
    const watch = watchMode({ admin, clock, log })
    return { watch, clock, lines }
  }
  const settle = () => new Promise(resolve => setImmediate(resolve))

  it('is read from the Admin API until it is known', async () => {
    const { watch, clock } = start([new Error('no connection'), false])
    await settle()
    expect(watch.current()).to.include({ mode: undefined, problem: 'no connection' })
    clock.advance(500)
    await settle()
    expect(watch.current()).to.deep.equal({ mode: 'etcd', problem: '' })
    watch.stop()
  })

  it('is reported and logged when it changes at run time; it stays the same while it cannot be read', async () => {
    const { watch, clock, lines } = start([false, new Error('restarting'), true])
    let told = 0
    watch.onChange(() => (told += 1))
    await settle()
    clock.advance(30_000)
    await settle()
    expect(watch.current()).to.include({ mode: 'etcd', problem: 'restarting' })
    clock.advance(30_000)
    await settle()
    expect(watch.current()).to.include({ mode: 'standalone', problem: '' })
    expect(told).to.equal(2)
    expect(lines.at(-1)).to.include({ mode: 'standalone', before: 'etcd', level: 'warn' })
    watch.stop()
  })
})
