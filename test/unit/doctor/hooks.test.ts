import { expect } from 'chai'
import { hooksOf } from '../../../agent/doctor/hooks.ts'

describe('doctor: hooks of a pod', () => {
  const exec = (line: string) => ({ exec: { command: ['sh', '-c', line] } })
  const pod = (preStop: unknown, where: 'containers' | 'initContainers' = 'containers') => ({
    spec: { [where]: [{ name: 'app', lifecycle: { preStop } }, { name: 'plain' }] }
  })
  const URL = 'http://agent:8080/v1/prestop'

  const CURL = `curl -fsS --connect-timeout 2 -X POST ${URL} && exit; sleep 1;`

  const cases: [what: string, preStop: unknown, longestMs: number | undefined][] = [
    ['curl -m', exec(`curl -m 25 ${URL}`), 25_000],
    ['curl -fsSm', exec(`curl -fsSm 25 ${URL}`), 25_000],
    ['curl --max-time', exec(`curl --max-time 2.5 ${URL}`), 2500],
    ['as documented until 0.1', exec(`curl -fsS --connect-timeout 2 -m 24 ${URL} || sleep 5`), 29_000],
    ['as documented', exec(`timeout 24 sh -c 'for try in 1 2 3; do ${CURL} done; false' || sleep 5`), 29_000],
    ['timeout with a signal and a unit', exec(`timeout -k 1 -s KILL 20s curl ${URL}`), 20_000],
    ['timeout where -m may be used again', exec(`timeout 24 sh -c 'curl -m 30 ${URL}'`), 24_000],
    ['?timeout=', exec(`curl "${URL}?until=barrier&timeout=10s"`), 10_000],
    ['the smaller of both', exec(`curl -m 25 "${URL}?timeout=10s"`), 10_000],
    ['no bound of its own', exec(`curl ${URL}`), undefined],
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
    it(what, () => expect(hooksOf(pod(preStop))).to.deep.equal([{ container: 'app', longestMs }]))
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
})
