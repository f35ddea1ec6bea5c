import { z } from 'zod'
import { duration } from './fields.ts'

/** The section `arrivals`. */
export const arrivals = z.strictObject({
  gate: z
    .boolean()
    .default(false)
    .describe(
      'Open the readiness gate `apisix-drain.io/in-upstream` of pods that have it, once every gateway routes to them: docs/sync.md. Needs the right to patch `pods/status`, which the chart grants only then.'
    ),
  failOpen: duration(
    '60s',
    { min: '1s', max: '30m' },
    'How long a pod may wait for its gate. Then it is opened all the same, with a warning.'
  )
})
