import { z } from 'zod'
import { DURATION_FORM, formatDuration, parseDuration } from '../../rules/drain/annotations.ts'
import { ALLOW_FORM } from '../../rules/members/members.ts'

interface Range {
  readonly min: string
  readonly max: string
}

const ms = (text: string) => parseDuration(text) ?? Number.NaN

/** A duration stays text here, so that it can be printed as it was written. `config.ts` converts it to ms. */
const duration = (byDefault: string, { min, max }: Range, description: string) =>
  z
    .string({ error: `write a duration: ${DURATION_FORM}` })
    .refine(text => parseDuration(text) !== undefined, {
      error: `write a duration: ${DURATION_FORM}`,
      abort: true
    })
    .refine(text => ms(text) >= ms(min) && ms(text) <= ms(max), {
      error: `must be between ${formatDuration(ms(min))} and ${formatDuration(ms(max))}`
    })
    .default(byDefault)
    .meta({ description, format: `duration, ${min} to ${max}` })

const port = (byDefault: number, description: string) =>
  z.int().min(1).max(65_535).default(byDefault).describe(description)

/** 0 lets the system pick one. */
const listenPort = () => z.int().min(0).max(65_535)

const text = () => z.string().trim().min(1)

const admin = z.strictObject({
  url: z
    .url({
      protocol: /^https?$/,
      error: ({ input }) => (input === undefined ? undefined : 'must be an http:// or https:// URL')
    })
    .meta({
      description: 'Where the Admin API listens, without a path. It has no safe default.',
      example: 'http://apisix-admin.apisix:9180'
    }),
  keyFile: text().meta({
    description: 'File that holds the admin key, such as a mounted Secret. Read again when it is rotated.',
    example: '/run/secrets/apisix-drain/admin-key'
  }),
  caFile: text()
    .optional()
    .describe(
      'PEM file with the CA that signed the certificate of an https Admin API. Read again when it is replaced.'
    ),
  timeout: duration(
    '5s',
    { min: '100ms', max: '1m' },
    'Bound of one Admin API call. A black-holed etcd answers nothing for minutes.'
  )
})

const control = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'Read the Control API of every gateway: the only evidence without our plugin (`observed`), and the lag of lists.'
    ),
  port: port(9090, 'Port of the Control API on every gateway.'),
  timeout: duration('1s', { min: '50ms', max: '30s' }, 'Bound of one Control API read.')
})

const barrier = z.strictObject({
  port: port(9092, 'Port of the Barrier listener of our plugin on every gateway.'),
  scheme: z
    .enum(['https', 'http'])
    .default('https')
    .describe('Scheme of the Barrier listener. With `http` everybody who reads that traffic has the token.'),
  tokenFile: text().meta({
    description: 'File that holds the bearer token of the Barrier listener. Read again when it is rotated.',
    example: '/run/secrets/apisix-drain/barrier-token'
  }),
  caFile: text()
    .optional()
    .describe('PEM file with the CA of an https Barrier listener. Read again when it is replaced.'),
  serverName: text().optional().meta({
    description:
      'Name that the certificate of an https Barrier listener must have. Without it the certificate must have the address of the gateway.',
    example: 'barrier.apisix-drain'
  }),
  ttl: duration(
    '2m',
    { min: '1s', max: '1h' },
    'How long an entry outlives an agent that stopped renewing it. Whole seconds.'
  )
})

/** The selector that matches the pods of the official chart. */
export const CHART_SELECTOR = 'app.kubernetes.io/name=apisix'

const gateways = z.strictObject({
  namespace: text().optional().describe('Namespace of the gateway pods. Without it: all namespaces.'),
  selector: text()
    .default(CHART_SELECTOR)
    .describe('Label selector of the gateway pods. The default is what the official chart sets.'),
  static: z
    .array(z.strictObject({ name: text(), host: text() }))
    .min(1)
    .optional()
    .meta({
      description: 'Gateways outside of Kubernetes, by name and address. Replaces namespace and selector.',
      example: [{ name: 'edge-1', host: '192.0.2.10' }]
    })
})

const apisix = z.strictObject({
  admin: admin
    .optional()
    .describe(
      'The Admin API, through which nodes are removed. The barrier needs none: leave the section out if APISIX has none.'
    ),
  control: control.prefault({}).describe('The Control API of the gateways, read only.'),
  barrier: barrier
    .optional()
    .describe(
      'Our plugin inside the gateways: evidence `barrier`. Leave the section out where it is not loaded.'
    ),
  gateways: gateways.prefault({}).describe('Which gateways there are.')
})

const drain = z.strictObject({
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

const dashboard = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('Serve the dashboard at `/` and `/api/state`. It is read-only.'),
  auth: z
    .enum(['token', 'none'])
    .default('token')
    .describe(
      'Who may see it: whoever shows the token, or (`none`) everybody who can reach the port. Choose `none` only where something in front of the agent asks who is there.'
    ),
  tokenFile: text().optional().meta({
    description:
      'File that holds the token of the dashboard, needed with `auth: token`. Read again when it is rotated.',
    example: '/run/secrets/apisix-drain/dashboard-token'
  })
})

const serve = z.strictObject({
  host: text()
    .default('::')
    .describe('Address to listen on; `::` for both families, `0.0.0.0` for IPv4 alone.'),
  port: listenPort().default(8080).describe('Port to listen on; 0 lets the system pick one.'),
  pagePort: listenPort().optional().meta({
    description:
      'Port of the dashboard and `/metrics`, apart from the hooks, for NetworkPolicies. Without it they are on `port`; 0 lets the system pick one.',
    example: 8081
  }),
  dashboard: dashboard.prefault({}).describe('The dashboard.'),
  shutdownTimeout: duration(
    '20s',
    { min: '0s', max: '10m' },
    'After SIGTERM: how long hooks that are held may take. Keep it below the grace of the agent itself.'
  )
})

const kubernetes = z.strictObject({
  kubeconfig: text()
    .optional()
    .describe(
      'Path of a kubeconfig. Without it: the in-cluster account, else the usual kubeconfig of the user.'
    ),
  account: text()
    .default('/var/run/secrets/kubernetes.io/serviceaccount')
    .describe('Folder with the token and the CA of the account that Kubernetes gives a pod.'),
  namespaces: z.array(text()).default([]).describe('Namespaces whose pods are watched. Empty: all of them.')
})

const ghosts = z.strictObject({
  after: duration(
    '10m',
    { min: '1s', max: '168h' },
    'How long an address of `sync.podRanges` must have had no pod before its node is a ghost.'
  )
})

const leader = z.strictObject({
  lease: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, { error: 'must be <namespace>/<name>, such as apisix/apisix-drain' })
    .optional()
    .describe(
      "The Lease of all agents that work together, as `namespace/name`. Without it: `apisix-drain` in the agent's own namespace, and outside of a cluster there is no election."
    )
})

const sync = z.strictObject({
  allow: z
    .array(
      z.string().regex(ALLOW_FORM, { error: 'must be <namespace>/<id of an upstream>, such as shop/shop-*' })
    )
    .default([])
    .meta({
      description:
        'Upstreams whose nodes may follow Services that ask for it (docs/sync.md), each with the namespace of these Services. `*` stands for any characters. Empty: none.',
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

const inject = z.strictObject({
  file: text()
    .optional()
    .describe(
      'What the webhook adds to pods, as the chart writes it with `injection.webhook.enabled`. Without it there is no webhook.'
    ),
  port: listenPort().default(8443).describe('Port of the webhook, with TLS; 0 lets the system pick one.')
})

const log = z.strictObject({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
    .default('info')
    .describe('Least level logged.')
})

/** The configuration file, before any value is derived from it. docs/config.md is generated only from this. */
export const schema = z.strictObject({
  kubernetes: kubernetes.prefault({}).describe('The Kubernetes API server.'),
  apisix: apisix.prefault({}).describe('Apache APISIX.'),
  drain: drain.prefault({}).describe('What a drain waits for.'),
  serve: serve.prefault({}).describe('The HTTP server of the agent.'),
  leader: leader.prefault({}).describe('Which of several agents leads.'),
  sync: sync.prefault({}).describe('Upstreams that follow Services.'),
  ghosts: ghosts.prefault({}).describe('Nodes whose pods are gone.'),
  inject: inject.prefault({}).describe('The webhook that adds hooks to pods.'),
  log: log.prefault({}).describe('The log.')
})

/** The settings as the user wrote them, with the defaults for all others. */
export type Settings = z.infer<typeof schema>
