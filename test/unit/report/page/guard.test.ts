import { expect } from 'chai'
import { secretOf } from '../../../build/config.ts'
import { createGuard, SESSION_COOKIE, SESSION_SECONDS } from '../../../../agent/report/page/guard.ts'
import { manualClock } from '../../../build/manual-clock.ts'

describe('guard', () => {
  const setUp = (value = 's3cret') => {
    const clock = manualClock()
    const guard = createGuard({ kind: 'token', token: secretOf(value) }, clock)
    const bearer = (token: string) => guard.admits({ authorization: `Bearer ${token}`, cookie: undefined })
    const session = (cookie: string) => guard.admits({ authorization: undefined, cookie })
    return { clock, guard, bearer, session }
  }

  it('admits the token and no other', () => {
    const { guard, bearer } = setUp()
    expect(bearer('s3cret')).to.equal(true)
    for (const wrong of ['s3cre', 's3cret2', 'S3CRET', '']) expect(bearer(wrong), wrong).to.equal(false)
    expect(guard.admits({ authorization: 'Basic s3cret', cookie: undefined })).to.equal(false)
    expect(guard.admits({ authorization: undefined, cookie: undefined })).to.equal(false)
  })

  it('gives a session that expires and contains no part of the token', () => {
    const { clock, guard, session } = setUp()
    expect(guard.login('wrong')).to.equal(undefined)
    const value = guard.login('s3cret')!
    expect(value).not.to.include('s3cret')
    expect(session(`a=b; ${SESSION_COOKIE}=${value}; c=d`)).to.equal(true)
    clock.advance(SESSION_SECONDS * 1000 - 1)
    expect(session(`${SESSION_COOKIE}=${value}`)).to.equal(true)
    clock.advance(1)
    expect(session(`${SESSION_COOKIE}=${value}`)).to.equal(false)
  })

  it('refuses a session that was forged, extended, or made with another token', () => {
    const { guard, session } = setUp()
    const [until = '', signature = ''] = guard.login('s3cret')!.split('.')
    expect(session(`${SESSION_COOKIE}=${Number(until) + 1}.${signature}`)).to.equal(false)
    expect(session(`${SESSION_COOKIE}=${until}.`)).to.equal(false)
    expect(session(`${SESSION_COOKIE}=`)).to.equal(false)
    expect(session(`x${SESSION_COOKIE}=${until}.${signature}`)).to.equal(false)
    expect(session(`${SESSION_COOKIE}=${setUp('other').guard.login('other')}`)).to.equal(false)
  })

  it('asks for no token if it is configured so', () => {
    const guard = createGuard({ kind: 'none' }, manualClock())
    expect(guard.admits({ authorization: undefined, cookie: undefined })).to.equal(true)
    expect(guard.login('anything')).to.equal(undefined)
  })
})
