import { expect } from 'chai'
import { normaliseAddress } from '../../../agent/report/page/guard.ts'
import { parseQuery } from '../../../agent/hook/identify.ts'

describe('prestop query', () => {
  const parse = (text: string) => parseQuery(new URLSearchParams(text))

  it('has no required parameter', () => {
    expect(parse('')).to.deep.equal({
      ok: true,
      times: { timeoutMs: undefined, sleepMs: undefined, atLeastMs: undefined },
      named: undefined,
      uid: undefined,
      container: undefined
    })
  })

  it('reads every parameter', () => {
    expect(
      parse('timeout=2.5s&sleep=5s&atLeast=4s&namespace=shop&pod=web-1.a&uid=0-a&container=app')
    ).to.deep.equal({
      ok: true,
      times: { timeoutMs: 2500, sleepMs: 5000, atLeastMs: 4000 },
      named: { namespace: 'shop', name: 'web-1.a' },
      uid: '0-a',
      container: 'app'
    })
  })

  const wrong: Record<string, RegExp> = {
    'timeout=25': /timeout must be a number and a unit, such as 3s/,
    'timeout=': /timeout must be/,
    'timeout=-1s': /timeout must be/,
    'timeout=0s': /longer than 0/,
    'sleep=5': /sleep must be a number and a unit/,
    'timeout=3s&timeout=4s': /timeout is given more than once/,
    'pod=web-1': /namespace and pod go together/,
    'namespace=shop': /namespace and pod go together/,
    'namespace=shop&pod=..%2Fsecrets': /pod is no name that Kubernetes allows/,
    'namespace=Shop&pod=a': /namespace is no name/,
    'uid=%0a': /uid is no uid/,
    'until=barrier': /"until" is no parameter; there are timeout, sleep, atLeast, namespace/
  }
  for (const [text, why] of Object.entries(wrong)) {
    it(`refuses ?${text}`, () => {
      const parsed = parse(text)
      if (parsed.ok) throw new Error('taken')
      expect(parsed.error).to.equal('bad-request')
      expect(parsed.why).to.match(why)
    })
  }

  it('reports all problems at once', () => {
    const parsed = parse('uid=%0a&timeout=y')
    expect(parsed.ok ? '' : parsed.why).to.match(/timeout.*; uid/)
  })
})

describe('address', () => {
  for (const [given, wanted] of [
    ['10.0.0.7', '10.0.0.7'],
    ['::ffff:10.0.0.7', '10.0.0.7'],
    ['::FFFF:10.0.0.7', '10.0.0.7'],
    ['FD00::A', 'fd00::a'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::1', '::1']
  ] as const) {
    it(`${given} is ${wanted}`, () => expect(normaliseAddress(given)).to.equal(wanted))
  }
})
