import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { startAgentProcess } from '../build/agent-process.ts'
import { freePorts } from '../build/free-ports.ts'
import { callHook } from '../build/hook.ts'
import { sideBySide } from '../build/side-by-side.ts'

/** The number of hooks. Their answers are one log line each, together more than a pipe holds (64 kB). */
const HOOKS = 500

function pipe(folder: string): string {
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  return path
}

describe('feature: a log that cannot be written', () => {
  const test = sideBySide({ gateways: 1, agent: false, barrier: true })

  for (const [what, open, ends] of [
    ['a full disk', () => openSync('/dev/full', 'w'), true],
    // Without a reader, the agent does not end at SIGTERM: it waits to write its last lines, until SIGKILL at the end of the grace.
    ['a pipe without a reader', (folder: string) => openSync(pipe(folder), 'r+'), false]
  ] as const) {
    test(`on ${what} delays no hook`, async start => {
      const rig = await start()
      const [pod, other] = [rig.pod('web-0'), rig.pod('web-1')]
      rig.upstream('web', [pod, other])
      const folder = mkdtempSync(join(tmpdir(), 'apisix-drain-log-'))
      const stdout = open(folder)
      const { port } = await freePorts('port')
      const agent = await startAgentProcess(rig, { SERVE_PORT: `${port}` }, stdout)
      try {
        rig.end(pod)
        for (let i = 0; i < HOOKS; i += 10) {
          const signal = AbortSignal.timeout(20_000)
          const hooks = Array.from({ length: 10 }, () => callHook({ port: agent.port, from: pod.ip, signal }))
          for (const { status, body } of await Promise.all(hooks)) {
            expect([status, body.evidence]).to.deep.equal([200, 'barrier'])
          }
        }
        if (ends) expect(await agent.end('SIGTERM')).to.equal(0)
      } finally {
        await agent.end('SIGKILL')
        closeSync(stdout)
        rmSync(folder, { recursive: true })
      }
    })
  }
})
