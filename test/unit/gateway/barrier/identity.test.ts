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
