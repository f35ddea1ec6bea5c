import { z } from 'zod'
import { duration, text } from './fields.ts'

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
    )
})

/** The section `serve`. */
export const serve = z.strictObject({
  host: text()
    .default('::')
    .describe('Address to listen on; `::` for both families, `0.0.0.0` for IPv4 alone.'),
  port: z.int().min(0).max(65_535).default(8080).describe('Port to listen on; 0 lets the system pick one.'),
  pagePort: z.int().min(0).max(65_535).optional().meta({
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
