import { z } from 'zod'
import { duration } from './fields.ts'

/** The section `drain`. */
export const drain = z.strictObject({
  reserve: duration(
    '7s',
    { min: '250ms', max: '29s' },
    'Every hook is answered this long before the grace ends, so that the application can stop in order. The documented hook counts on 7s.'
  ),
  minimumEvidence: z
    .enum(['barrier', 'observed', 'accepted', 'timer'])
    .default('accepted')
    .describe(
      'The weakest evidence that counts as proof. Better evidence is waited for as long as it can still come.'
    ),
  observedSettle: duration(
    '250ms',
    { min: '0s', max: '30s' },
    'Wait after the removal and the first clean read, for requests that had been given the node before.'
  ),
  acceptedSettle: duration(
    '5s',
    { min: '0s', max: '30s' },
    'Wait after the Admin API accepted a removal, where gateways could not be observed.'
  ),
  floor: duration(
    '15s',
    { min: '0s', max: '10m' },
    'How long a hook is held if nothing could be proved and `minimumEvidence` is `timer`, or if a place hides its pod.'
  ),
  longLivedWait: duration(
    '0s',
    { min: '0s', max: '1h' },
    'How long a drain waits for websockets, server-sent events and streams at most, from its start. A pod overrides it with the annotation `apisix-drain.io/long-lived-wait`.'
  ),
  dryRun: z.boolean().default(false).describe('Plan and log every write to APISIX, send none.')
})
