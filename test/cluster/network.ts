import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DNS, HOSTS, PODS } from './addresses.ts'
import { COREDNS, programPath } from './build.ts'
import { ready, startDaemon, type Daemon } from './daemon.ts'

const READY = '127.0.0.1:8181'
const PROXY_HEALTH = '127.0.0.1:10256'

/** A real CoreDNS and a real kube-proxy, for Service names and addresses. */
export interface Network {
  stop(): Promise<void>
}

/**
 * Starts CoreDNS and kube-proxy outside the pods. CoreDNS listens at the DNS address that the kubelets give to pods. One
 * kube-proxy serves all hosts, because the hosts share a network namespace.
 *
 * @param cgroup the cgroup of CoreDNS
 */
export async function startNetwork(folder: string, kubeconfig: string, cgroup: string): Promise<Network> {
  const file = (name: string) => join(folder, name)
  mkdirSync(folder)
  writeFileSync(
    file('Corefile'),
    `.:53 {
  bind ${DNS}
  errors
  ready ${READY}
  kubernetes cluster.local {
    kubeconfig ${kubeconfig}
  }
}
`
  )
  writeFileSync(file('kube-proxy.json'), JSON.stringify(proxyConfig(kubeconfig)))
  const path = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`
  const dns = startDaemon('coredns', file('coredns.log'), COREDNS, ['-conf', file('Corefile')], {
    cgroup
  })
  const proxy = startDaemon(
    'kube-proxy',
    file('kube-proxy.log'),
    programPath('kube-proxy'),
    [`--config=${file('kube-proxy.json')}`, `--hostname-override=${HOSTS[0]?.name ?? ''}`],
    { env: { PATH: path } }
  )
  await ready(dns, () => isOk(`http://${READY}/ready`))
  await ready(proxy, () => isOk(`http://${PROXY_HEALTH}/healthz`))
  const daemons: readonly Daemon[] = [proxy, dns]
  return {
    async stop() {
      for (const daemon of daemons) await daemon.stop()
    }
  }
}

const isOk = async (url: string): Promise<boolean> =>
  (await fetch(url, { signal: AbortSignal.timeout(1000) })).ok

const proxyConfig = (kubeconfig: string): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'iptables',
  clientConnection: { kubeconfig },
  // kube-proxy then keeps the pod's own source address, by which the agent identifies the caller.
  clusterCIDR: PODS,
  detectLocalMode: 'ClusterCIDR',
  healthzBindAddress: PROXY_HEALTH,
  metricsBindAddress: '127.0.0.1:10249',
  // kube-proxy must not change the size and timeouts of the connection table, which all namespaces share.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' }
})
