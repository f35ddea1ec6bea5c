import { z } from 'zod'
import { ALLOW_FORM } from '../members/allowed.ts'
import { duration, port, scheme, text } from './fields.ts'
import { arrivals, ghosts, kubernetes } from './sections.ts'

const admin = z.strictObject({
  url: z
    .url({
      protocol: /^https?$/,
      error: ({ input }) => (input === undefined ? undefined : 'must be an http:// or https:// URL')
    })
    .meta({
      description: 'Where the Admin API listens, without a path. It has no safe default, so it is required.',
      example: 'http://apisix-admin.apisix:9180'
    }),
  keyFile: text().optional().meta({
    description: 'File that holds the admin key, such as a mounted Secret. Read again when it is rotated.',
    example: '/run/secrets/apisix-drain/admin-key'
  }),
  keyEnv: text()
    .optional()
    .describe('Environment variable that holds the admin key. Exactly one of keyFile and keyEnv is needed.'),
  caFile: text()
    .optional()
    .describe(
      'PEM file with the CA that signed the certificate of an https Admin API. Read again when it is replaced.'
    ),
  timeout: duration(
    '5s',
    { min: '100ms', max: '1m' },
    'Bound of one Admin API call. A black-holed etcd answers nothing for minutes.'
  ),
  pageSize: z
    .int()
    .min(10)
    .max(500)
    .default(500)
    .describe('Objects per page of the inventory. APISIX takes 10 to 500.')
})

const control = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'Read the Control API of every gateway: evidence `observed`. Off: `accepted` is the best without our plugin.'
    ),
  port: port(9090, 'Port of the Control API on every gateway.'),
  scheme: scheme('the Control API'),
  timeout: duration('1s', { min: '50ms', max: '30s' }, 'Bound of one Control API read.')
})

const barrier = z.strictObject({
  port: port(9092, 'Port of the Barrier listener of our plugin on every gateway.'),
  scheme: scheme('the Barrier listener'),
  tokenFile: text().optional().meta({
    description: 'File that holds the bearer token of the Barrier listener. Read again when it is rotated.',
    example: '/run/secrets/apisix-drain/barrier-token'
  }),
  tokenEnv: text()
    .optional()
    .describe('Environment variable that holds that token. Exactly one of tokenFile and tokenEnv is needed.'),
  caFile: text()
    .optional()
    .describe('PEM file with the CA of an https Barrier listener. Read again when it is replaced.'),
  serverName: text().optional().meta({
    description:
      'Name that the certificate of an https Barrier listener must have. The agent calls gateways by their addresses, which a certificate for all of them cannot list. Without it the certificate must have the address.',
    example: 'barrier.apisix-drain'
  }),
  timeout: duration(
    '1s',
    { min: '50ms', max: '30s' },
    'Bound of one call of the Barrier API; the wait of a long poll comes on top.'
  ),
  ttl: duration(
    '2m',
    { min: '1s', max: '1h' },
    'How long an entry outlives an agent that stopped renewing it. Whole seconds.'
  )
})

const gateways = z.strictObject({
  namespace: text().optional().describe('Namespace of the gateway pods. Without it: all namespaces.'),
  selector: text()
    .optional()
    .describe(
      'Label selector of the gateway pods. Default: `app.kubernetes.io/name=apisix`, as the official chart sets it.'
    ),
  static: z
    .array(z.strictObject({ name: text(), host: text() }))
    .min(1)
    .optional()
    .meta({
      description: 'Gateways outside of Kubernetes, by name and address. Replaces namespace and selector.',
      example: [{ name: 'edge-1', host: '192.0.2.10' }]
    })
})

const drain = z.strictObject({
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

const PEER = { error: 'must be host:port such as apisix-drain-agents.apisix.svc:8080' }

const dashboard = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('Serve the dashboard at `/`, `/api/state` and `/api/stream`. It is read-only.'),
  auth: z
    .enum(['token', 'none'])
    .default('token')
    .describe(
      'Who may see it: whoever shows the token, or (`none`) everybody who can reach the port. Choose `none` only where something in front of the agent asks who is there.'
    ),
  tokenFile: text().optional().meta({
    description: 'File that holds the token of the dashboard. Read again when it is rotated.',
    example: '/run/secrets/apisix-drain/dashboard-token'
  }),
  tokenEnv: text()
    .optional()
    .describe(
      'Environment variable that holds that token. With `auth: token` exactly one of the two is needed.'
    ),
  origins: z
    .array(z.url({ protocol: /^https?$/, error: 'must be an origin such as https://drain.example.org' }))
    .default([])
    .describe(
      'Further origins from which `/api/stream` may be opened, if a proxy in front changes the Host header.'
    ),
  trustedProxies: z
    .array(z.union([z.cidrv4(), z.cidrv6()], { error: 'must be a range such as 10.244.0.0/16' }))
    .default([])
    .meta({
      description:
        'Ranges of proxies in front of the dashboard. Behind them wrong tokens count for the address in `X-Forwarded-For`, so one client does not lock out all others.',
      example: ['10.244.0.0/16']
    }),
  docsUrl: z
    .url({ protocol: /^https?$/, error: 'must be a URL such as https://git.example.org/apisix-drain/docs' })
    .optional()
    .meta({
      description:
        "Where you keep this project's folder `docs`. The words of the page then link to their pages there.",
      example: 'https://git.example.org/apisix-drain/docs'
    }),
  peers: z
    .array(
      z
        .string()
        .regex(/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+):[0-9]+$/i, PEER)
        .refine(peer => URL.canParse(`http://${peer}`), PEER)
    )
    .default([])
    .meta({
      description:
        'Where all agents are, itself included: `host:port`. A name stands for all its addresses, as that of a headless Service does. Each agent asks the others once a second with a short session made from the token, and shows the drains and answers of all. The chart fills it in.',
      example: ['apisix-drain-agents.apisix.svc:8080']
    })
})

const serve = z.strictObject({
  host: text().default('0.0.0.0').describe('Address to listen on; `::` for both families.'),
  port: z.int().min(0).max(65_535).default(8080).describe('Port to listen on; 0 lets the system pick one.'),
  pagePort: z.int().min(0).max(65_535).optional().meta({
    description:
      'Port of the dashboard and `/metrics`, if they are to be apart from the hooks: a NetworkPolicy can then tell them apart. Without it they are on `port`. Hooks, `/healthz` and `/readyz` are never on this port; 0 lets the system pick one.',
    example: 8081
  }),
  auth: z
    .enum(['source-ip', 'token'])
    .default('source-ip')
    .describe(
      'How a hook shows which pod it is for: by the address it comes from, or by the token of its pod (projected, audience `apisix-drain`) and nothing else.'
    ),
  trustedQuery: z
    .boolean()
    .default(true)
    .describe(
      'With `auth: source-ip`: accept `?namespace=&pod=` from an address that is no pod: the kubelet (httpGet) or a host. Only a pod that Kubernetes says is Terminating is drained.'
    ),
  maxHooks: z.int().min(1).max(100_000).default(2000).describe('Hooks held at once. More get 503.'),
  maxHooksPerPod: z
    .int()
    .min(1)
    .max(1000)
    .default(16)
    .describe('Hooks held at once for one pod. More get 429.'),
  dashboard: dashboard.prefault({}).describe('The dashboard.'),
  shutdownTimeout: duration(
    '20s',
    { min: '0s', max: '10m' },
    'After SIGTERM: how long hooks that are held may take. Keep it below the grace of the agent itself.'
  )
})

const leader = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'Elect one of several agents for what needs to be done once only: Admin API writes, repairs, Events. Off: each does all the work.'
    ),
  namespace: text()
    .optional()
    .describe(
      "Namespace of the Lease. Without it: the agent's own, and outside of a cluster there is no election."
    ),
  name: text()
    .default('apisix-drain')
    .describe('Name of the Lease, the same for all agents that work together.')
})

const sync = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Keep the nodes of an upstream what the endpoints of a Service are, where the Service asks for it: docs/sync.md.'
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
        'Ranges in which only pods have addresses. A node in there that no pod has is taken out of a synced upstream, also by an agent that never saw its pod, and is a ghost elsewhere.',
      example: ['10.244.0.0/16']
    })
})

const inject = z.strictObject({
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

const log = z.strictObject({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
    .default('info')
    .describe('Least level logged.'),
  pretty: z
    .boolean()
    .default(false)
    .describe('Lines for people. Needs pino-pretty; without it they stay JSON.')
})

/** The configuration file, before any value is derived from it. docs/config.md is generated only from this. */
export const schema = z.strictObject({
  kubernetes: kubernetes.prefault({}).describe('The Kubernetes API server.'),
  apisix: z
    .strictObject({
      admin: admin.describe('The Admin API, through which nodes are removed.'),
      control: control.prefault({}).describe('The Control API of the gateways, read only.'),
      barrier: barrier
        .optional()
        .describe(
          'Our plugin inside the gateways: evidence `barrier`. Leave the section out where it is not loaded.'
        ),
      gateways: gateways.prefault({}).describe('Which gateways there are.'),
      mode: z
        .enum(['auto', 'etcd', 'standalone'])
        .default('auto')
        .describe(
          'How APISIX keeps its configuration. `standalone`: API-driven, without etcd; nothing is ever written there. `auto`: asked of the Admin API, again every 30 seconds.'
        ),
      owner: z
        .enum(['auto', 'ingress-controller-1', 'ingress-controller-2', 'unknown'])
        .default('auto')
        .describe(
          'The other writer of upstreams. `auto`: detected for each by its labels. An ingress controller gets `drain.deferWrites` to remove a node itself.'
        )
    })
    .describe('Apache APISIX.'),
  drain: drain.prefault({}).describe('What a drain waits for.'),
  serve: serve.prefault({}).describe('The HTTP server of the agent.'),
  leader: leader.prefault({}).describe('Which of several agents leads.'),
  sync: sync.prefault({}).describe('Upstreams that follow Services.'),
  arrivals: arrivals.prefault({}).describe('Pods on their way in.'),
  ghosts: ghosts.prefault({}).describe('Nodes whose pods are gone.'),
  inject: inject.prefault({}).describe('The webhook that adds hooks to pods.'),
  log: log.prefault({}).describe('The log.')
})

/** The settings as they were written, with the defaults. */
export type Settings = z.infer<typeof schema>
