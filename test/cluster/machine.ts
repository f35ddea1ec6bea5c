import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SERVICES } from './addresses.ts'

/** Folders in which the programs use fixed paths. Each becomes a folder in memory that only this run sees. */
const PRIVATE = ['/run', '/var/lib', '/var/log']

/** Kernel settings that a kubelet needs. Without `shieldSysctls` the kubelet would set them for the whole machine. */
const WANTED = {
  '/proc/sys/vm/overcommit_memory': '1',
  '/proc/sys/kernel/panic': '10',
  '/proc/sys/kernel/panic_on_oops': '1',
  '/proc/sys/kernel/keys/root_maxkeys': '1000000',
  '/proc/sys/kernel/keys/root_maxbytes': '25000000'
}

/**
 * Prepares this process's namespaces for Kubernetes hosts with these addresses. Processes outside the namespaces see no change.
 *
 * @throws Error with the output of a command
 */
export function prepareMachine(folder: string, addresses: readonly string[]): void {
  run('mount', '--make-rshared', '/')
  for (const place of PRIVATE) run('mount', '-t', 'tmpfs', 'tmpfs', place)
  mkdirSync('/run/lock')
  shieldSysctls(join(folder, 'sysctl'))
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
  run('ip', 'link', 'set', 'lo', 'up')
  // All hosts are one network namespace with an address for each. Pods are behind routes, so no host needs an interface.
  for (const address of addresses) run('ip', 'address', 'add', `${address}/32`, 'dev', 'lo')
  // kube-proxy's rules for this namespace's own processes see only packets with a route.
  run('ip', 'route', 'add', SERVICES, 'dev', 'lo')
}

/** Mounts a file with the wanted value over each setting. So the kubelet reads and writes the file instead of the kernel's setting. */
function shieldSysctls(folder: string): void {
  mkdirSync(folder)
  for (const [path, value] of Object.entries(WANTED)) {
    const file = join(folder, path.replaceAll('/', '-'))
    writeFileSync(file, `${value}\n`)
    run('mount', '--bind', file, path)
  }
}

function run(program: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`)
}
