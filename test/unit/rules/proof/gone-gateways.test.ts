import { expect } from 'chai'
import { gatewayEndsAt, REQUESTS_LAST_MS, type Heard } from '../../../../agent/rules/proof/observed.ts'

const heard = (differs: Partial<Heard>): Heard => ({
  lastSuccessAt: undefined,
  lastAttemptAt: undefined,
  refused: false,
  ...differs
})
const AT = 1_000_000
const GONE = { vanishedAt: AT }

describe('a gateway that vanished', () => {
  it('has ended when the port it answered on refuses connections', () => {
    const now = heard({ lastSuccessAt: AT - 10, lastAttemptAt: AT + 10, refused: true })
    expect(gatewayEndsAt(GONE, [now])).to.equal(AT)
  })

  it('has not ended because it refused before it vanished', () => {
    const before = heard({ lastSuccessAt: AT - 100, lastAttemptAt: AT - 10, refused: true })
    expect(gatewayEndsAt(GONE, [before])).to.equal(AT - 100 + REQUESTS_LAST_MS)
  })

  it('has not ended because a port on which it never answered is closed', () => {
    const closed = heard({ lastAttemptAt: AT + 10, refused: true })
    expect(gatewayEndsAt(GONE, [closed])).to.equal(AT + REQUESTS_LAST_MS)
    const answers = heard({ lastSuccessAt: AT + 5, lastAttemptAt: AT + 5 })
    expect(gatewayEndsAt(GONE, [closed, answers])).to.equal(AT + 5 + REQUESTS_LAST_MS)
  })

  it('is judged by its barrier, if both ports have answered', () => {
    const barrier = heard({ lastSuccessAt: AT + 50, lastAttemptAt: AT + 50 })
    const control = heard({ lastSuccessAt: AT - 50, lastAttemptAt: AT + 60, refused: true })
    expect(gatewayEndsAt(GONE, [barrier, control])).to.equal(AT + 50 + REQUESTS_LAST_MS)
  })

  it('that answers is polled on; a silent one counts until its requests are over', () => {
    expect(gatewayEndsAt(GONE, [heard({ lastSuccessAt: AT + 10 * REQUESTS_LAST_MS })])).to.equal(
      AT + 11 * REQUESTS_LAST_MS
    )
    expect(gatewayEndsAt(GONE, [heard({ lastSuccessAt: AT - 30 })])).to.equal(AT - 30 + REQUESTS_LAST_MS)
    // The gateway's host died long before the pod's object was deleted.
    expect(gatewayEndsAt(GONE, [heard({ lastSuccessAt: AT - 2 * REQUESTS_LAST_MS })])).to.be.below(AT)
  })
})

it('a gateway that is not Ready has ended when it is stopped and refuses, or silent for two minutes (A11)', () => {
  const [unready, stopped] = [{ unreadyAt: AT }, { unreadyAt: AT, stopped: true as const }]
  const refused = heard({ lastAttemptAt: AT + 10, refused: true })
  expect(gatewayEndsAt(stopped, [refused])).to.equal(AT)
  expect(gatewayEndsAt(unready, [refused])).to.equal(AT + REQUESTS_LAST_MS)
  expect(gatewayEndsAt(stopped, [heard({ lastAttemptAt: AT })])).to.equal(AT + REQUESTS_LAST_MS)
  expect(gatewayEndsAt(unready, [heard({ lastSuccessAt: 0 })])).to.equal(AT + REQUESTS_LAST_MS)
  expect(gatewayEndsAt({}, [heard({ lastSuccessAt: 0 })])).to.equal(Infinity)
})
