import { expect } from 'chai'
import { faultsOf, MISTAKES, play } from '../mistakes/play.ts'

describe('feature: mistakes of an operator', () => {
  it('are 25 at least', () => expect(MISTAKES.length).to.be.at.least(25))

  for (const mistake of MISTAKES) {
    it(`${mistake.title}: the command names the setting and the change`, async () => {
      const printed = await play(mistake)
      expect(faultsOf(mistake, printed), printed.text).to.deep.equal([])
    })
  }
})
