import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
/** Tests of rolling updates without a kubelet: the sandbox's stand-in runs the containers' commands and hooks as processes. */
const SCENARIOS = ['test/feature/sandbox.test.ts', 'test/feature/modes.test.ts']
const ALWAYS = ['--reporter', './test/reporter.mjs', '--require', './test/build/setup.ts']
const MOCHA = ['--no-config', '--timeout', '60000', ...ALWAYS]

/** Runs the scenarios that need no kubelet. Returns the exit code. */
export function runStandIn(): number {
  console.log(
    'a stand-in for the kubelet takes over: containers and hooks are processes, and so is all of Kubernetes'
  )
  const { status } = spawnSync('mocha', [...MOCHA, ...SCENARIOS], { cwd: ROOT, stdio: 'inherit' })
  console.log('what ran was a stand-in for the kubelet, not a real one')
  return status ?? 1
}
