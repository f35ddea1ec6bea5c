import { expect } from 'chai'
import { createLog, describeError } from '../../../agent/base/log.ts'

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
