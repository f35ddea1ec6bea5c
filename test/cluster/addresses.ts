/** Every address of the cluster. The suite has its own network namespace, so these addresses conflict with no others. */
export const API_SERVER = '10.80.0.1'
export const DNS = '10.80.0.53'
export const SERVICES = '10.96.0.0/16'
/** All pods of all hosts. */
export const PODS = '10.81.0.0/16'

export interface HostAddresses {
  readonly name: string
  readonly address: string
  readonly pods: string
  readonly kubeletPort: number
  readonly taints?: readonly object[]
}

const TAINTS = [{ key: 'trouble', effect: 'NoSchedule' }]

/** Two hosts, so that a test can drain one of them, and one for pods that tolerate trouble. */
export const HOSTS: readonly HostAddresses[] = [
  { name: 'host-a', address: '10.80.0.11', pods: '10.81.1.0/24', kubeletPort: 10_250 },
  { name: 'host-b', address: '10.80.0.12', pods: '10.81.2.0/24', kubeletPort: 10_251 },
  { name: 'host-c', address: '10.80.0.13', pods: '10.81.3.0/24', kubeletPort: 10_252, taints: TAINTS }
]
