import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '../plugin/eventually.ts'
import type { HostAddresses } from './addresses.ts'
import { containerdPath } from './build.ts'
import { ready, startDaemon } from './daemon.ts'
import { PAUSE } from './images/names.ts'
import { CNI_PLUGINS, RUNC } from './needs.ts'
import type { HostCgroups } from './shares.ts'

/** A real containerd with Debian's runc and CNI plugins: it runs the containers of one host. */
export interface Containerd {
  readonly socket: string
  stop(): Promise<void>
}

export interface ContainerdOptions extends HostAddresses {
  readonly folder: string
  readonly cgroups: HostCgroups
  /** OCI archives; the files may appear later. */
  readonly images: readonly string[]
}

/** How long the images may take to appear: enough to make them for the first time, while other work runs. */
const MADE_MS = 180_000

/** @throws Error with the end of containerd's log if it does not become ready, or with its error about an image */
export async function startContainerd(options: ContainerdOptions): Promise<Containerd> {
  const { name, folder } = options
  const file = (part: string) => join(folder, part)
  const socket = `/run/${name}/containerd.sock`
  for (const path of [file('cni'), file('bin'), `/run/${name}`]) mkdirSync(path, { recursive: true })
  // containerd finds the shim by its plain name.
  symlinkSync(containerdPath('containerd-shim-runc-v2'), file('bin/containerd-shim-runc-v2'))
  writeFileSync(file('cni/10-pods.conflist'), JSON.stringify(network(options)))
  writeFileSync(file('containerd.toml'), config(options, socket))
  const containerd = startDaemon(
    `containerd of ${name}`,
    file('containerd.log'),
    containerdPath('containerd'),
    [`--config=${file('containerd.toml')}`],
    {
      env: { PATH: `${file('bin')}:${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` },
      cgroup: options.cgroups.system
    }
  )
  const ctr = [`--address=${socket}`, '--namespace=k8s.io'] as const
  await ready(containerd, () =>
    Promise.resolve(spawnSync(containerdPath('ctr'), [...ctr, 'version']).status === 0)
  )
  for (const image of options.images) {
    await eventually(`${image} is made`, () => existsSync(image), MADE_MS)
    await promisify(execFile)(containerdPath('ctr'), [...ctr, 'images', 'import', '--local', image])
  }
  return { socket, stop: () => containerd.stop() }
}

/** The CNI configuration: routes instead of a bridge, so that Service addresses also work between pods of the same host. */
const network = ({ name, pods, folder }: ContainerdOptions): object => ({
  cniVersion: '1.0.0',
  name: `pods-of-${name}`,
  plugins: [
    {
      type: 'ptp',
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: pods }]],
        routes: [{ dst: '0.0.0.0/0' }],
        dataDir: join(folder, 'addresses')
      }
    }
  ]
})

/** Snapshotters that the suite does not use. They would need more programs and devices. */
const DISABLED = ['btrfs', 'zfs', 'devmapper', 'erofs', 'blockfile'].map(
  name => `io.containerd.snapshotter.v1.${name}`
)

const config = ({ name, folder }: ContainerdOptions, socket: string): string => `
version = 3
root = "${join(folder, 'containerd')}"
state = "/run/${name}/containerd"
disabled_plugins = ${JSON.stringify([...DISABLED, 'io.containerd.nri.v1.nri'])}
[grpc]
  address = "${socket}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["${CNI_PLUGINS}"]
  conf_dir = "${join(folder, 'cni')}"
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "${RUNC}"
  SystemdCgroup = false
`
