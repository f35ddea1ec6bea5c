import { z } from 'zod'
import { duration } from './fields.ts'

/** The section `drain`. */
export const drain = z.strictObject({
  reserve: duration(
    '7s',
    { min: '250ms', max: '29s' },
    'Every hook is answered this long before the grace ends, so that the application can stop in order. The documented hook counts on 7s.'
  ),
  settle: duration(
    '5s',
    { min: '0s', max: '30s' },
    'Without the plugin: how long every gateway must have been seen without the pod. The sleep that a hook replaces counts if it is longer.'
  ),
  longLivedWait: duration(
    '0s',
    { min: '0s', max: '1h' },
    'How long a drain waits for websockets, server-sent events and streams at most, from its start. A pod overrides it with the annotation `apisix-drain.io/long-lived-wait`.'
  ),
  dryRun: z.boolean().default(false).describe('Plan and log every write to APISIX, send none.')
})
