import { z } from 'zod'
import { duration, text } from './fields.ts'

/** The section `kubernetes`. */
export const kubernetes = z.strictObject({
  kubeconfig: text()
    .optional()
    .describe(
      'Path of a kubeconfig. Without it: the in-cluster account, else the usual kubeconfig of the user.'
    ),
  account: text()
    .default('/var/run/secrets/kubernetes.io/serviceaccount')
    .describe('Folder with the token and the CA of the account that Kubernetes gives a pod.'),
  context: text().optional().describe('Context of the kubeconfig. Without it: its current one.'),
  namespaces: z.array(text()).default([]).describe('Namespaces whose pods are watched. Empty: all of them.'),
  events: z
    .boolean()
    .default(true)
    .describe(
      'Write one Kubernetes Event on every pod that was drained: how it went, or why it was not proved.'
    ),
  podCondition: z
    .boolean()
    .default(false)
    .describe(
      'Write the condition `apisix-drain.io/drained` on every pod that was drained. Needs the right to patch `pods/status`, which the chart grants only then.'
    )
})

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

/** The section `ghosts`. */
export const ghosts = z.strictObject({
  action: z
    .enum(['report', 'repair'])
    .default('report')
    .describe(
      'What becomes of a node whose pod is gone: a line in the log, or it is taken out. The last node of a holder is only replaced: by the pods that take over from it (with the plugin).'
    ),
  after: duration(
    '10m',
    { min: '1s', max: '168h' },
    'How long a drained pod must be gone before its node is a ghost. Also how long no pod must have had an address of `sync.podRanges` before a node there is a ghost, if the agent did not see its pod end.'
  )
})
