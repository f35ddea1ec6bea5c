import { expect } from 'chai'
import { hooksOf } from '../../../../agent/doctor/checks/check-hooks.ts'
import { commandFor } from '../../../../agent/hook/inject/inject.ts'

describe('doctor: hooks of a pod', () => {
  const exec = (line: string) => ({ exec: { command: ['sh', '-c', line] } })
  const pod = (preStop: unknown, where: 'containers' | 'initContainers' = 'containers') => ({
    spec: { [where]: [{ name: 'app', lifecycle: { preStop } }, { name: 'plain' }] }
  })
  const URL = 'http://agent:8080/v1/prestop'
  const OF = { container: 'app', sleep: 0 }

  const cases: [what: string, preStop: unknown, longestMs: number | undefined][] = [
    ['curl -m', exec(`curl -m 25 ${URL}`), 25_000],
    ['curl -fsSm', exec(`curl -fsSm 25 ${URL}`), 25_000],
    ['curl --max-time', exec(`curl --max-time 2.5 ${URL}`), 2500],
    ['as documented until 0.1', exec(`curl -fsS --connect-timeout 2 -m 24 ${URL} || sleep 5`), 29_000],
    ['as documented', exec(commandFor({ hook: 'curl', url: URL }, 30, OF)[2] ?? ''), 24_000],
    ['timeout with a signal and a unit', exec(`timeout -k 1 -s KILL 20s curl ${URL}`), 20_000],
    ['timeout where -m may be used again', exec(`timeout 24 sh -c 'curl -m 30 ${URL}'`), 24_000],
    ['?timeout=', exec(`curl "${URL}?uid=a&timeout=10s"`), 10_000],
    ['the smaller of both', exec(`curl -m 25 "${URL}?timeout=10s"`), 10_000],
    ['no bound of its own', exec(`curl ${URL}`), undefined],
    ['sleeps', exec(`curl -m 4 ${URL} || { sleep 20; sleep 20; }`), 44_000],
    ['a sleep in the background', exec(`sleep 5 & curl -m 20 ${URL} && kill $! || wait`), 20_000],
    ['wget -T', exec(`wget -qO- -T 20 ${URL} || sleep 5`), 25_000],
    ['wget --timeout', exec(`wget --timeout=20 ${URL}`), 20_000],
    ['our helper', { exec: { command: ['/apisix-drain/apisix-drain-hook'] } }, 24_000],
    [
      'our helper, with a budget of its own',
      {
        exec: {
          command: ['/apisix-drain/apisix-drain-hook', '--url', 'http://agent:8080', '--budget', '40s']
        }
      },
      40_000
    ],
    ['httpGet', { httpGet: { path: '/v1/prestop?timeout=20s', port: 8080 } }, 20_000]
  ]
  for (const [what, preStop, longestMs] of cases) {
    it(what, () => {
      const [hook, ...more] = hooksOf(pod(preStop))
      expect(more).to.deep.equal([])
      expect(hook).to.include({ container: 'app', longestMs })
    })
  }

  const NAMED = `${URL}?namespace=$POD_NAMESPACE&pod=$POD_NAME`
  const injected = (hook: 'curl' | 'helper') => ({
    exec: { command: commandFor({ hook, url: URL }, 30, OF) }
  })
  const calls: [what: string, preStop: unknown, named: boolean, followsProxy: boolean][] = [
    ['curl by address alone', exec(`curl ${URL}`), false, true],
    ['curl by address alone, without a proxy', exec(`curl --noproxy "*" ${URL}?timeout=10s`), false, false],
    ['curl by name', exec(`curl "${NAMED}"`), true, true],
    ['curl by name, without a proxy', exec(`curl --noproxy "*" "${NAMED}"`), true, false],
    ['curl by $HOSTNAME', exec(`NO_PROXY=* curl "${URL}?pod=$HOSTNAME&namespace=shop"`), true, false],
    ['wget by name', exec(`wget -qO- "${NAMED}"`), true, true],
    ['wget by name, without a proxy', exec(`wget --no-proxy -qO- "${NAMED}"`), true, false],
    ['httpGet by address alone', { httpGet: { path: '/v1/prestop', port: 8080 } }, false, false],
    ['httpGet by name', { httpGet: { path: '/v1/prestop?namespace=shop&pod=web-0' } }, true, false],
    ['injected curl', injected('curl'), true, false],
    ['injected helper', injected('helper'), true, false]
  ]
  for (const [what, preStop, named, followsProxy] of calls) {
    it(`reads whether a hook names its pod and follows a proxy: ${what}`, () =>
      expect(hooksOf(pod(preStop))[0]).to.include({ named, followsProxy }))
  }

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
      `timeout ${'-k -k '.repeat(170_000)} ${URL}`,
      `timeout ${'-'.repeat(1_000_000)} ${URL}`,
      `curl ${'-m'.repeat(500_000)} ${URL}`,
      `${'a|'.repeat(500_000)} ${URL}`,
      `${'|| exec '.repeat(125_000)} ${URL} || ${'sleep '.repeat(160_000)}`,
      `${URL}?timeout=${'1'.repeat(1_000_000)}`,
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
