import { expect } from 'chai'
import * as fc from 'fast-check'
import { createIdentity } from '../../../../agent/gateway/barrier/gateway-state.ts'

/** Gives answers of two instances to an identity, each to a later question. `A` and `B` are fit, `a` and `b` are unfit. */
function heard(answers: string, byHand = false) {
  const identity = createIdentity(byHand)
  for (const [i, one] of answers.split('').entries()) {
    const answer = { instance: one.toUpperCase(), fit: one === one.toUpperCase() }
    identity.note(answer, 10 * i, 10 * i + 5, true)
  }
  return identity
}

describe('identity of a gateway', () => {
  it('one gateway is counted as one, however often it is polled and restarted', () => {
    for (const answers of ['A', 'AAAA', 'AAB', 'ABC', 'ABBBCCCD']) expect(heard(answers).doubt()).to.equal('')
  })

  it('an instance that answers again after another one shows several gateways, for good', () => {
    for (const answers of ['ABA', 'AABBA', 'ABCA', 'ABAAAAAAA', 'ABACCCCC']) {
      expect(heard(answers).isSeveral(), answers).to.equal(true)
      expect(heard(answers).doubt()).to.contain('several gateways')
    }
  })

  it('a fit gateway and an unfit one count as several too', () => {
    expect(heard('AbA').isSeveral()).to.equal(true)
  })

  it('a replaced binary (USR2) does not count as several: both are unfit until one is gone', () => {
    expect(heard('AAababbabBBB').isSeveral()).to.equal(false)
  })

  it('a slow answer shows the instance at its start, not the present one', () => {
    const identity = createIdentity(false)
    identity.note({ instance: 'A', fit: true }, 0, 5, false)
    // The last answer was sent before the restart, but received after the new instance's first answer.
    identity.note({ instance: 'B', fit: true }, 20, 25, false)
    identity.note({ instance: 'A', fit: true }, 15, 30, false)
    expect(identity.isSeveral()).to.equal(false)
    identity.note({ instance: 'A', fit: true }, 31, 35, false)
    expect(identity.isSeveral()).to.equal(true)
  })

  it('an address by hand is trusted after sixteen answers, each on its own connection', () => {
    expect(heard('A'.repeat(15), true).doubt()).to.contain('not known yet')
    expect(heard('A'.repeat(16), true).doubt()).to.equal('')
    const identity = createIdentity(true)
    for (let i = 0; i < 50; i++) identity.note({ instance: 'A', fit: true }, i, i, false)
    expect(identity.isOpen()).to.equal(true)
  })

  it('answers of an unfit gateway do not count: its return would not be noticed', () => {
    expect(heard('a'.repeat(50), true).doubt()).to.contain('not known yet')
    expect(heard('ab'.repeat(50) + 'AB', true).doubt()).to.contain('not known yet')
    expect(heard('ab'.repeat(50) + 'ABA', true).doubt()).to.contain('several gateways')
  })

  it('an unanswered read restarts the count: a gateway hidden by a restart may be back', () => {
    for (const byHand of [true, false]) {
      const identity = createIdentity(byHand)
      for (let i = 0; i < 16; i++) identity.note({ instance: 'A', fit: true }, i, i, true)
      identity.unanswered()
      expect(identity.isOpen()).to.equal(byHand)
      for (let i = 0; i < 15; i++) identity.note({ instance: 'A', fit: true }, 20 + i, 20 + i, true)
      expect(identity.isOpen()).to.equal(byHand)
      identity.note({ instance: 'A', fit: true }, 40, 40, true)
      expect(identity.doubt()).to.equal('')
    }
  })

  it('two gateways behind a load balancer are not trusted, unless their answers look like one restart', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('A', 'B'), { minLength: 16, maxLength: 60 }), answers => {
        const text = answers.join('')
        // Answers in this order look like a restart: first all answers of one instance, then all of the other.
        const looksLikeOne = /^(A*B*|B*A*)$/.test(text)
        expect(heard(text, true).doubt() === '').to.equal(looksLikeOne)
      })
    )
  })

  it('remembers few instances of a gateway that crashes all day', () => {
    const identity = createIdentity(false)
    for (let i = 0; i < 1000; i++) identity.note({ instance: `i${i}`, fit: true }, i, i, true)
    expect(identity.doubt()).to.equal('')
    identity.note({ instance: 'i995', fit: true }, 2000, 2000, true)
    expect(identity.isSeveral()).to.equal(true)
  })
})
