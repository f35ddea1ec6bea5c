import { z } from 'zod'
import { duration, port, text } from './fields.ts'

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
      'Name that the certificate of an https Barrier listener must have. Without it the certificate must have the address of the gateway.',
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

/** The section `apisix`. */
export const apisix = z.strictObject({
  admin: admin.describe('The Admin API, through which nodes are removed.'),
  control: control.prefault({}).describe('The Control API of the gateways, read only.'),
  barrier: barrier
    .optional()
    .describe(
      'Our plugin inside the gateways: evidence `barrier`. Leave the section out where it is not loaded.'
    ),
  gateways: gateways.prefault({}).describe('Which gateways there are.')
})
