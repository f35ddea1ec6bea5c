import { z } from 'zod'
import { ALLOW_FORM } from '../../rules/members/allowed.ts'
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
  namespaces: z.array(text()).default([]).describe('Namespaces whose pods are watched. Empty: all of them.'),
  events: z
    .boolean()
    .default(true)
    .describe(
      'Write one Kubernetes Event on every pod that was drained: how it went, or why it was not proved.'
    )
})

/** The section `ghosts`. */
export const ghosts = z.strictObject({
  after: duration(
    '10m',
    { min: '1s', max: '168h' },
    'How long a drained pod must be gone, or an address of `sync.podRanges` without a pod, before its node is a ghost.'
  )
})

/** The section `leader`. */
export const leader = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe('Elect one of several agents for sync and Events. Off: each does all the work.'),
  lease: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, { error: 'must be <namespace>/<name>, such as apisix/apisix-drain' })
    .optional()
    .describe(
      "The Lease of all agents that work together, as `namespace/name`. Without it: `apisix-drain` in the agent's own namespace, and outside of a cluster there is no election."
    )
})

/** The section `sync`. */
export const sync = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Keep the nodes of upstreams equal to the endpoints of the Services that ask for it: docs/sync.md.'
    ),
  allow: z
    .array(
      z.string().regex(ALLOW_FORM, { error: 'must be <namespace>/<id of an upstream>, such as shop/shop-*' })
    )
    .default([])
    .meta({
      description:
        'Upstreams that Services may fill, each with the namespace of these Services. `*` stands for any characters. Needed for `enabled`.',
      example: ['shop/shop-*']
    }),
  podRanges: z
    .array(z.union([z.cidrv4(), z.cidrv6()], { error: 'must be a range such as 10.244.0.0/16' }))
    .default([])
    .meta({
      description:
        'Ranges in which only pods have addresses. A node there that no pod has is removed from a synced upstream, and is a ghost elsewhere.',
      example: ['10.244.0.0/16']
    })
})

/** The section `inject`. */
export const inject = z.strictObject({
  file: text()
    .optional()
    .describe(
      'What the webhook adds to pods, as the chart writes it with `injection.webhook.enabled`. Without it there is no webhook.'
    ),
  port: z
    .int()
    .min(0)
    .max(65_535)
    .default(8443)
    .describe('Port of the webhook, with TLS; 0 lets the system pick one.')
})

/** The section `log`. */
export const log = z.strictObject({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
    .default('info')
    .describe('Least level logged.')
})
