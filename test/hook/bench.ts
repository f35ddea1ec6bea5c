/** `npm run bench:hook` compares the helper's size, start and whole call with curl. Prints medians and the slowest tenth, in ms. */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { percentile } from '../../sandbox/percentile.ts'
import { buildHook } from '../../scripts/hook.ts'
import { HOOK, runHook } from './run.ts'
import { answers, startStub } from './stub.ts'

const RUNS = 200

const show = (what: string, times: readonly number[]) =>
  console.log(
    `${what.padEnd(28)} p50 ${percentile(times, 0.5).toFixed(1)} ms, p90 ${percentile(times, 0.9).toFixed(1)} ms`
  )

async function timed(run: () => unknown): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < RUNS; i++) {
    const began = performance.now()
    await run()
    times.push(performance.now() - began)
  }
  return times
}

buildHook(process.arch === 'arm64' ? 'arm64' : 'amd64')
console.log(`size                         ${statSync(HOOK).size} bytes`)
const stub = await startStub([answers])
show('/bin/true', await timed(() => spawnSync('/bin/true')))
show('hook --version', await timed(() => spawnSync(HOOK, ['--version'])))
show('hook, answered at once', await timed(() => runHook(['--url', stub.url])))
show(
  'sh and curl, the same',
  await timed(() =>
    runHook(['-c', `curl -fsS -X POST ${stub.url}/v1/prestop`], { PATH: process.env['PATH'] ?? '' }, [
      '/bin/sh'
    ])
  )
)
await stub.close()
