import { ADMIN_FAULTS } from './faults-admin.ts'
import { AGENT_FAULTS } from './faults-agent.ts'
import { GATEWAY_FAULTS } from './faults-gateway.ts'
import { KUBERNETES_FAULTS } from './faults-kubernetes.ts'
import type { Break } from './stage.ts'

/** All faults that the scenarios make, by name. docs/lab/faults.md lists them. */
export const FAULTS = {
  ...KUBERNETES_FAULTS,
  ...ADMIN_FAULTS,
  ...GATEWAY_FAULTS,
  ...AGENT_FAULTS
} satisfies Readonly<Record<string, Break>>

export type FaultName = keyof typeof FAULTS
