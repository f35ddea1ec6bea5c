import * as manifests from '../../sandbox/manifests.ts'
import type { World } from '../../sandbox/world.ts'

/** Adds a Ready gateway at whose address nothing listens. Returns its name. */
export function addSilentGateway({ kubernetes: { store } }: World): string {
  const name = 'apisix-9'
  store.create('pods', manifests.gatewayPod(name))
  const now = new Date(store.now()).toISOString()
  store.patchStatus('pods', manifests.GATEWAY_NAMESPACE, name, manifests.runningStatus('127.93.255.254', now))
  return name
}
