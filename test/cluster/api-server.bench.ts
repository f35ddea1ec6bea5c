/**
 * `npm run bench:cluster`: how often a rolling update loses requests if the API server crashes in the middle of it. Most losses
 * come from the backoff of Kubernetes' own watches (up to 30 s), so the suite does not test this case. The checks are the suite's.
 */
import { scaleAgent } from './agent.ts'
import { API_SERVER_RESTARTS } from './ends.ts'
import { endedInTime, lostNothing, observing } from './scenario.ts'
import { world } from './setup.ts'
import { together } from './together.ts'

const ROUNDS = 12

describe('crashes of the API server under load, with apisix-drain', () => {
  const side = together(1)
  before(() => scaleAgent(world(), 2))

  for (let round = 1; round <= ROUNDS; round += 1) {
    const seen = observing(side, { ...API_SERVER_RESTARTS, name: `api-server-${round}` })
    it(`loses no request: ${API_SERVER_RESTARTS.title}, round ${round} of ${ROUNDS}`, async () => {
      const observed = await seen()
      lostNothing(observed)
      endedInTime(observed, API_SERVER_RESTARTS.ends)
    })
  }
})
