import { z } from 'zod'
import { duration } from './fields.ts'

/** The section `drain`. */
export const drain = z.strictObject({
  reserve: duration(
    '7s',
    { min: '250ms', max: '29s' },
    'Every hook is answered this long before the grace ends, so that the application can still stop in order. The documented hook counts on 7s: 30 s of grace, `timeout 24`, 5 s of fallback.'
  ),
  minimumEvidence: z
    .enum(['barrier', 'observed', 'accepted', 'timer'])
    .default('accepted')
    .describe(
      'The weakest evidence that counts as proof. Better evidence is waited for as long as it can still come.'
    ),
  reads: z
    .int()
    .min(1)
    .max(100)
    .default(5)
    .describe(
      'Clean Control API reads in a row, each on its own connection, that a gateway must give for `observed`.'
    ),
  observedSettle: duration(
    '250ms',
    { min: '0s', max: '30s' },
    'Wait after the removal and the first of the clean reads: for requests that had been given the node before.'
  ),
  acceptedSettle: duration(
    '5s',
    { min: '0s', max: '30s' },
    'Wait after the Admin API accepted a removal, where gateways could not be observed.'
  ),
  floor: duration(
    '15s',
    { min: '0s', max: '10m' },
    'The sleep that this tool replaces: how long a hook is held where nothing could be proved, if `minimumEvidence` is `timer`. Else it is held until its deadline.'
  ),
  foreignHold: duration(
    '5s',
    { min: '0s', max: '10m' },
    'From the start of a drain, how long the APISIX objects of other namespaces can hold a pod that is the last node in them. After that the barrier seals the pod, and those objects answer 503 until they list another node. Counted for objects of an ingress controller, and with the plugin only. A route to the Service of another namespace (ReferenceGrant) is such an object. `10m` holds every pod until its deadline.'
  ),
  longLivedWait: duration(
    '0s',
    { min: '0s', max: '1h' },
    'From the start of a drain, how long websockets, server-sent events and streams are waited for at most. They do not end by themselves: the pod can end them properly once it has received SIGTERM, so waiting only takes time from it. A pod overrides it with the annotation `apisix-drain.io/long-lived-wait`.'
  ),
  kubeletStatusDelay: duration(
    '3s',
    { min: '0s', max: '10s' },
    'How late a kubelet may report that it ends a pod by itself (its host shuts down, or lacks memory or disk). After this time the agent asks Kubernetes again. Only then a hook gets the answer that its pod stays, so a container restart takes this much longer.'
  ),
  dryRun: z.boolean().default(false).describe('Plan and log every write to APISIX, send none.'),
  liftForeign: z
    .boolean()
    .default(false)
    .describe(
      'The leader removes entries from the gateways that no agent of its release has claimed for `apisix.barrier.ttl`. Only for gateways that no other release uses: the entries of another release are removed too.'
    ),
  inventoryEvery: duration(
    '30s',
    { min: '1s', max: '1h' },
    'How often all holders are read again without a reason.'
  ),
  onDisruption: z
    .boolean()
    .default(false)
    .describe('Start a drain at the condition DisruptionTarget. Earlier, but it may be a false alarm.'),
  deferWrites: duration(
    '2s',
    { min: '0s', max: '25s' },
    'Leave a removal to the owner of the holder (an ingress controller) for this long before doing it ourselves, while the barrier of every gateway keeps requests away. A list of nodes is written when the pod is gone. Where a barrier does not keep requests away, the owner gets as long as it was seen to take, and at most 1s of this.'
  )
})
