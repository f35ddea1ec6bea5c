import { expect } from 'chai'
import { hooksOf } from '../../../../agent/doctor/checks/check-hooks.ts'
import { commandFor } from '../../../../agent/hook/inject/inject.ts'
import { rowsOf } from '../../../build/rows.ts'

describe('doctor: hooks of a pod', () => {
  const exec = (line: string) => ({ exec: { command: ['sh', '-c', line] } })
  const pod = (preStop: unknown, where: 'containers' | 'initContainers' = 'containers') => ({
    spec: { [where]: [{ name: 'app', lifecycle: { preStop } }, { name: 'plain' }] }
  })
  const URL = 'http://agent:8080/v1/prestop'

  interface Row {
    readonly case: string
    readonly run?: string
    readonly preStop?: object
    readonly injected?: 'curl' | 'helper'
  }
  for (const { case: what, run = '', injected, preStop, ...wanted } of rowsOf(
    'calls.yaml',
    import.meta.url
  ) as readonly Row[])
    it(`is read: ${what}`, () => {
      const ours = injected && commandFor({ hook: injected, url: URL }, 30, { container: 'app', sleep: 0 })
      const [hook, ...more] = hooksOf(pod(ours ? { exec: { command: ours } } : (preStop ?? exec(run))))
      expect(more).to.deep.equal([])
      expect(hook).to.include({ container: 'app', ...wanted })
    })

  it('finds them in sidecars, and nowhere else', () => {
    expect(hooksOf(pod(exec(`curl ${URL}`), 'initContainers'))).to.have.length(1)
    for (const other of [
      undefined,
      null,
      'x',
      {},
      { spec: { containers: 'x' } },
      pod(exec('sleep 5')),
      pod({ exec: { command: ['cat', '/apisix-drain-hook'] } }),
      pod({ exec: { command: [7] } })
    ]) {
      expect(hooksOf(other)).to.deep.equal([])
    }
  })

  it('reads a hostile text of a megabyte in linear time', () => {
    // A regular expression with nested repetition would need exponential time from about 30 of these words on.
    const hostile = [
      `${'a|'.repeat(500_000)} ${URL}`,
      `${'|| exec '.repeat(125_000)} ${URL} || ${'sleep '.repeat(160_000)}`,
      `${URL}?atLeast=${'1'.repeat(1_000_000)}`,
      `/v1/prestop ${'"'.repeat(1_000_000)}`,
      `/v1/prestop ${'https://'.repeat(125_000)}`
    ]
    const began = process.cpuUsage()
    for (const text of hostile) expect(hooksOf(pod(exec(text)))).to.have.length(1)
    const { user } = process.cpuUsage(began)
    // 8 MB take about 0.5 s of CPU. A quadratic step would need minutes.
    expect(user / 1e6).to.be.below(8)
  })
})
