import { expect } from 'chai'
import * as fc from 'fast-check'

import { createIdentity } from '../../../agent/barrier/identity.ts'

/** Answers one after the other, each asked when the one before was in: `A` and `B` fit, `a` and `b` not. */
function heard(answers: string, byHand = false) {
  const identity = createIdentity(byHand)
  for (const [i, one] of answers.split('').entries()) {
    const answer = { instance: one.toUpperCase(), fit: one === one.toUpperCase() }
    identity.note(answer, 10 * i, 10 * i + 5, true)
  }
  return identity
}

describe('identity of a gateway', () => {
  it('one gateway is one, however often it is asked and restarted', () => {
    for (const answers of ['A', 'AAAA', 'AAB', 'ABC', 'ABBBCCCD']) expect(heard(answers).doubt()).to.equal('')
  })

  it('who answers again after another one has is several, for good', () => {
    for (const answers of ['ABA', 'AABBA', 'ABCA', 'ABAAAAAAA', 'ABACCCCC']) {
      expect(heard(answers).isSeveral(), answers).to.equal(true)
      expect(heard(answers).doubt()).to.contain('several gateways')
    }
  })

  it('a gateway that is fit, and another one that is not, are several too', () => {
    expect(heard('AbA').isSeveral()).to.equal(true)
  })

  it('a binary that is replaced (USR2) is none of that: both say that they are not fit until one is gone', () => {
    expect(heard('AAababbabBBB').isSeveral()).to.equal(false)
  })

  it('an answer that was long on its way says who was there, not who is', () => {
    const identity = createIdentity(false)
    identity.note({ instance: 'A', fit: true }, 0, 5, false)
    // Asked before the restart, and in after the new instance's first answer.
    identity.note({ instance: 'B', fit: true }, 20, 25, false)
    identity.note({ instance: 'A', fit: true }, 15, 30, false)
    expect(identity.isSeveral()).to.equal(false)
    identity.note({ instance: 'A', fit: true }, 31, 35, false)
    expect(identity.isSeveral()).to.equal(true)
  })

  it('an address written by hand is believed after sixteen answers on connections of their own', () => {
    expect(heard('A'.repeat(15), true).doubt()).to.contain('not known yet')
    expect(heard('A'.repeat(16), true).doubt()).to.equal('')
    const identity = createIdentity(true)
    for (let i = 0; i < 50; i++) identity.note({ instance: 'A', fit: true }, i, i, false)
    expect(identity.isOpen()).to.equal(true)
  })

  it('answers of one that is not fit do not count for that: it would not be heard to come back', () => {
    expect(heard('a'.repeat(50), true).doubt()).to.contain('not known yet')
    expect(heard('ab'.repeat(50) + 'AB', true).doubt()).to.contain('not known yet')
    expect(heard('ab'.repeat(50) + 'ABA', true).doubt()).to.contain('several gateways')
  })

  it('a question without an answer begins it anew: what a restart has hidden may be there again', () => {
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

  it('of two gateways behind a load balancer nothing is believed before both were heard often enough, or found out', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('A', 'B'), { minLength: 16, maxLength: 60 }), answers => {
        const text = answers.join('')
        // What cannot be told from a restart: all of one, then all of the other.
        const looksLikeOne = /^(A*B*|B*A*)$/.test(text)
        expect(heard(text, true).doubt() === '').to.equal(looksLikeOne)
      })
    )
  })

  it('remembers few instances, of a gateway that crashes all day', () => {
    const identity = createIdentity(false)
    for (let i = 0; i < 1000; i++) identity.note({ instance: `i${i}`, fit: true }, i, i, true)
    expect(identity.doubt()).to.equal('')
    identity.note({ instance: 'i995', fit: true }, 2000, 2000, true)
    expect(identity.isSeveral()).to.equal(true)
  })
})
