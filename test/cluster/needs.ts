import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** The folder of Debian's package containernetworking-plugins. */
export const CNI_PLUGINS = '/usr/lib/cni'
export const RUNC = '/usr/sbin/runc'

/** The cgroup controllers that a kubelet needs to manage pods. */
const CONTROLLERS = ['cpu', 'cpuacct', 'cpuset', 'memory']

/** The reasons why this machine cannot run a Kubernetes host, one line each; empty if it can. */
export function missing(): readonly string[] {
  if (process.platform !== 'linux') return ['Linux is needed']
  if (process.getuid?.() !== 0)
    return ['root is needed: kubelet and containerd make mounts, networks and cgroups']
  return [
    ...(canUnshare()
      ? []
      : ['`unshare --mount --net --pid` is refused: the machine is itself a container without rights']),
    ...cgroups(),
    ...(readFileSync('/proc/filesystems', 'utf8').includes('\toverlay\n')
      ? []
      : ['the kernel has no overlay file system']),
    ...(spawnSync('go', ['version']).status === 0 ? [] : ['Go 1.26 is needed (https://go.dev/dl)']),
    ...(existsSync('/usr/sbin/nginx') ? [] : ['apt-get install nginx-light libnginx-mod-http-lua']),
    ...(existsSync('/usr/bin/curl') ? [] : ['apt-get install curl']),
    ...(existsSync(RUNC) ? [] : ['apt-get install runc']),
    ...(existsSync(`${CNI_PLUGINS}/ptp`) ? [] : ['apt-get install containernetworking-plugins']),
    ...(existsSync('/usr/sbin/iptables') ? [] : ['apt-get install iptables'])
  ]
}

const canUnshare = (): boolean =>
  spawnSync('unshare', '--mount --net --pid --fork --mount-proc ip link set lo up'.split(' ')).status === 0

function cgroups(): readonly string[] {
  if (existsSync('/sys/fs/cgroup/cgroup.controllers')) {
    // Only the root cgroup can have processes and enable controllers for its children. Only the root cgroup lacks `cgroup.type`.
    return existsSync('/sys/fs/cgroup/cgroup.type')
      ? ['/sys/fs/cgroup is not the root of cgroup v2: start the container with --cgroupns=host']
      : []
  }
  const without = CONTROLLERS.filter(name => !existsSync(`/sys/fs/cgroup/${name}/cgroup.procs`))
  return without.length === 0 ? [] : [`no cgroup hierarchy at /sys/fs/cgroup/${without.join(', ')}`]
}
