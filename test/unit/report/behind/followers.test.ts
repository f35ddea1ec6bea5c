import { expect } from 'chai'
import { createFollowers } from '../../../../agent/report/behind/followers.ts'

const WEB = { namespace: 'shop', name: 'web' }
const API = { namespace: 'shop', name: 'api' }

describe('the holders that follow a Service', () => {
  it('are counted: a Service is followed until the last of them leaves', () => {
    const followers = createFollowers()
    expect(followers.has(WEB)).equal(false)
    followers.moved(undefined, WEB)
    followers.moved(undefined, { ...WEB })
    followers.moved(WEB, API)
    expect([followers.has(WEB), followers.has(API)]).eql([true, true])
    followers.moved(WEB, undefined)
    expect([followers.has(WEB), followers.has(API)]).eql([false, true])
  })
})
