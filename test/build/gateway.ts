import type { GatewayFact } from '../../agent/rules/drain/facts.ts'

/** A Ready gateway. */
export const GATEWAY: GatewayFact = {
  id: 'g',
  name: 'apisix-0',
  ip: '10.0.0.100',
  ready: true,
  terminating: false,
  host: undefined
}
