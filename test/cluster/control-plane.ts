import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { kubeconfigFor, writeKubeconfig } from '../../sandbox/kubernetes/kubeconfig.ts'
import { writeApiServerFiles } from '../install/api-server-files.ts'
import { call, type Answer } from '../install/api-server.ts'
import { ETCD, kubernetesPath } from '../install/build.ts'
import { API_SERVER, SERVICES } from './addresses.ts'
import { programPath } from './build.ts'
import { ready, startDaemon, type Daemon } from './daemon.ts'

const URL = `https://${API_SERVER}:6443`
const ETCD_URL = 'http://127.0.0.1:2379'

/** A real etcd, kube-apiserver, kube-controller-manager and kube-scheduler. */
export interface ControlPlane {
  readonly url: string
  readonly kubeconfig: string
  /** PEM of the CA that signed the API server's certificate. */
  readonly ca: string
  readonly token: string
  call(method: string, path: string, body?: unknown): Promise<Answer>
  /**
   * Kills the API server and starts it again. At SIGTERM the API server would close its port at once and wait for its watches
   * until the kill 10 s later. By then the kubelets would poll rarely, and the hosts' leases could expire.
   */
  restartApiServer(): Promise<void>
  restartControllerManager(): Promise<void>
  stop(): Promise<void>
}

/** @throws Error with the end of a program's log if the program does not become ready */
export async function startControlPlane(folder: string): Promise<ControlPlane> {
  const file = (name: string) => join(folder, name)
  mkdirSync(folder)
  const { token, flags } = writeApiServerFiles(folder)
  const kubeconfig = file('kubeconfig')
  const start = (name: string, program: string, args: readonly string[]) =>
    startDaemon(name, file(`${name}.log`), program, args)
  const get = async (path: string) => (await call(URL, 'GET', path, undefined, token)).status === 200

  const etcd = start('etcd', ETCD, [
    `--data-dir=${file('etcd')}`,
    `--listen-client-urls=${ETCD_URL}`,
    `--advertise-client-urls=${ETCD_URL}`,
    '--listen-peer-urls=http://127.0.0.1:2380',
    '--unsafe-no-fsync'
  ])
  const startApiServer = () =>
    start('kube-apiserver', kubernetesPath('kube-apiserver'), [
      `--etcd-servers=${ETCD_URL}`,
      '--secure-port=6443',
      `--bind-address=${API_SERVER}`,
      `--advertise-address=${API_SERVER}`,
      ...flags,
      '--allow-privileged=true',
      // DNS does not resolve the names of the hosts.
      '--kubelet-preferred-address-types=InternalIP',
      `--service-cluster-ip-range=${SERVICES}`
    ])
  const startControllerManager = () =>
    start('kube-controller-manager', programPath('kube-controller-manager'), [
      `--kubeconfig=${kubeconfig}`,
      `--service-account-private-key-file=${file('sa.key')}`,
      `--root-ca-file=${file('certs/apiserver.crt')}`,
      '--leader-elect=false',
      '--bind-address=127.0.0.1'
    ])

  let apiServer = startApiServer()
  await ready(apiServer, () => get('/readyz'))
  const ca = readFileSync(file('certs/apiserver.crt'), 'utf8')
  await writeKubeconfig(kubeconfig, kubeconfigFor({ url: URL, ca, token }))
  let controllerManager = startControllerManager()
  const scheduler = start('kube-scheduler', programPath('kube-scheduler'), [
    `--kubeconfig=${kubeconfig}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1'
  ])
  const again = async (daemon: Daemon, startIt: () => Daemon) => {
    await daemon.stop()
    return startIt()
  }
  return {
    url: URL,
    kubeconfig,
    ca,
    token,
    call: (method, path, body) => call(URL, method, path, body, token, ca),
    async restartApiServer() {
      await apiServer.kill()
      apiServer = startApiServer()
      await ready(apiServer, () => get('/readyz'))
    },
    async restartControllerManager() {
      controllerManager = await again(controllerManager, startControllerManager)
    },
    async stop() {
      for (const daemon of [scheduler, controllerManager, apiServer, etcd]) await daemon.stop()
    }
  }
}
