import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SERVICES } from './addresses.ts'

/** Where the programs keep what has a fixed place. In memory, and only for this run to see. */
const PRIVATE = ['/run', '/var/lib', '/var/log']

/** What a kubelet wants of the kernel, and would set for the whole machine. */
const WANTED = {
  '/proc/sys/vm/overcommit_memory': '1',
  '/proc/sys/kernel/panic': '10',
  '/proc/sys/kernel/panic_on_oops': '1',
  '/proc/sys/kernel/keys/root_maxkeys': '1000000',
  '/proc/sys/kernel/keys/root_maxbytes': '25000000'
}

/**
 * Makes these namespaces ready for Kubernetes hosts with these addresses. Nothing of it is seen outside of them.
 *
 * @throws Error with what a command said
 */
export function prepareMachine(folder: string, addresses: readonly string[]): void {
  run('mount', '--make-rshared', '/')
  for (const place of PRIVATE) run('mount', '-t', 'tmpfs', 'tmpfs', place)
  mkdirSync('/run/lock')
  shieldSysctls(join(folder, 'sysctl'))
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
  run('ip', 'link', 'set', 'lo', 'up')
  // The hosts are one network namespace with an address for each: pods are behind routes, so none needs an interface.
  for (const address of addresses) run('ip', 'address', 'add', `${address}/32`, 'dev', 'lo')
  // Only what has a route is looked at by kube-proxy's rules for this namespace's own processes.
  run('ip', 'route', 'add', SERVICES, 'dev', 'lo')
}

/** The kubelet finds files that say what it wants, and writes to them. */
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
