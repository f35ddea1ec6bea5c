import { z } from 'zod'
import { text } from './fields.ts'

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
