import { expect } from 'chai'
import { countAnswers } from '../../../../sandbox/answers.ts'
import { percentile, summary } from '../../../../sandbox/percentile.ts'
import { createProgress } from '../../../../sandbox/progress.ts'
import { jsonReport, succeeded, table, type ArmDetail } from '../../../../sandbox/report.ts'
import { createTally } from '../../../../sandbox/load/tally.ts'

function detail(name: ArmDetail['name'], differs: Partial<ArmDetail> = {}): ArmDetail {
  return {
    name,
    requests: 1000,
    failed: 0,
    hookMs: { p50: 5003.4, p99: 5009, max: 5010.2 },
    rolloutMs: 7123,
    load: createTally().result(),
    hooks: { run: 6, failed: 0 },
    answers: {},
    late: 0,
    ...differs
  }
}

describe('sandbox: the report', () => {
  it('--json has exactly the agreed fields', () => {
    expect(jsonReport([detail('sleep-5')])).to.deep.equal({
      arms: [
        {
          name: 'sleep-5',
          requests: 1000,
          failed: 0,
          hookMs: { p50: 5003.4, p99: 5009, max: 5010.2 },
          rolloutMs: 7123
        }
      ]
    })
  })

  it('is a success only if an arm with the agent ran, and no such arm lost a request', () => {
    expect(succeeded([detail('no-hook', { failed: 7 }), detail('apisix-drain')])).to.equal(true)
    expect(succeeded([detail('apisix-drain', { failed: 1 })])).to.equal(false)
    expect(succeeded([detail('apisix-drain', { requests: 0 })])).to.equal(false)
    expect(succeeded([detail('sleep-5')])).to.equal(false)
    const dead = [detail('controller-dead-no-hook', { failed: 2000 }), detail('controller-dead')]
    expect(succeeded(dead)).to.equal(true)
    expect(succeeded([detail('apisix-drain'), detail('controller-dead', { failed: 1 })])).to.equal(false)
    expect(succeeded([])).to.equal(false)
  })

  it('shows a table with aligned columns, and a dash if there was no hook', () => {
    const none = { hooks: { run: 0, failed: 0 }, hookMs: { p50: 0, p99: 0, max: 0 } }
    const text = table([detail('no-hook', { ...none, failed: 12 }), detail('sleep-5', { rolloutMs: 900 })])
    expect(text.split('\n')).to.deep.equal([
      '          requests   failed   hook p50     p99     max   rollout',
      'no-hook       1000       12          –       –       –     7.1 s',
      'sleep-5       1000        0      5.0 s   5.0 s   5.0 s    900 ms'
    ])
  })

  it('compares the cost of a hook with the sleep of the same run', () => {
    const drain = detail('apisix-drain', { hookMs: { p50: 50, p99: 400, max: 400 } })
    expect(table([detail('sleep-5'), drain])).to.contain('100 times shorter than the sleep; a hook waits')
    expect(table([drain])).to.contain('or less; a hook waits')
    expect(table([detail('sleep-5')])).to.not.contain('half of the hooks')
  })

  it('lists the failures under the table, with their kind', () => {
    const tally = createTally()
    tally.ended('post', { ok: false, kind: 'status', status: 502, pod: undefined, detail: '' }, 0, 5)
    const text = table([
      detail('no-hook', {
        failed: 1,
        load: tally.result(),
        late: 3,
        hooks: { run: 6, failed: 2 },
        answers: { 'removed (observed)': 4 }
      })
    ])
    expect(text).to.contain('no-hook: failed 1 × post (1 × status)')
    expect(text).to.contain('no-hook: hooks answered 4 × removed (observed)')
    expect(text).to.contain('no-hook: 3 requests reached a pod after its hook had ended')
    expect(text).to.contain('no-hook: 2 of 6 hooks failed')
  })
})

describe('sandbox: the answers to hooks', () => {
  const hook = (output: string) => ({
    container: 'app',
    kind: 'exec' as const,
    startedAt: 0,
    endedAt: 1,
    ok: true,
    exitCode: 0,
    output
  })

  it('is counted by result and evidence; a fallback is no answer', () => {
    const ack = '{"result":"removed","evidence":"observed"}'
    const hooks = [hook(ack), hook(`curl: (56) something\n${ack}\n`), hook('curl: (7) refused\n'), hook('')]
    expect(countAnswers(hooks)).to.deep.equal({ 'removed (observed)': 2, 'no answer': 2 })
  })
})

describe('sandbox: percentiles', () => {
  it('are measured values', () => {
    const values = Array.from({ length: 100 }, (_, i) => 100 - i)
    expect(percentile(values, 0.5)).to.equal(50)
    expect(percentile(values, 0.99)).to.equal(99)
    expect(percentile(values, 1)).to.equal(100)
    expect(percentile([7], 0.5)).to.equal(7)
    expect(percentile([], 0.5)).to.equal(0)
    expect(summary([1.04, 2.06])).to.deep.equal({ p50: 1, p99: 2.1, max: 2.1 })
  })
})

describe('sandbox: progress', () => {
  const screen = (isTTY: boolean) => {
    const written: string[] = []
    return { isTTY, columns: 10, written, write: (text: string) => void written.push(text) }
  }

  it('rewrites one line in a terminal, cut to its width', () => {
    let now = 0
    const tty = screen(true)
    const progress = createProgress(tty, () => now)
    progress.update('a long line of text')
    progress.update('too early')
    now = 100
    progress.update('b')
    progress.done('finished')
    expect(tty.written).to.deep.equal(['\r\u001B[2Ka long li', '\r\u001B[2Kb', '\r\u001B[2Kfinished\n'])
  })

  it('otherwise writes a plain line per second, and every final line', () => {
    let now = 0
    const log = screen(false)
    const progress = createProgress(log, () => now)
    for (; now < 2500; now += 100) progress.update(String(now))
    progress.done('finished')
    expect(log.written).to.deep.equal(['0\n', '1000\n', '2000\n', 'finished\n'])
  })
})
