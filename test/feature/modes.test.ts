import { expect } from 'chai'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runArm } from '../../sandbox/arms.ts'
import type { AdminRequest } from '../../sandbox/gateways/options.ts'
import { OWNER_AGENT } from '../../sandbox/owner/put.ts'
import type { SandboxMode } from '../../sandbox/owner/start.ts'

// The sandbox's rolling update under load, for the ways of running APISIX that sandbox.test.ts leaves out (its `--late` plays etcd-2.x).

describe('sandbox: a rolling update loses nothing in any mode', () => {
  const writes: Record<Exclude<SandboxMode, 'etcd-1.8' | 'etcd-2.x'>, 'may write' | 'never writes'> = {
    standalone: 'never writes',
    discovery: 'never writes',
    sync: 'may write'
  }
  for (const [mode, may] of Object.entries(writes) as [keyof typeof writes, string][]) {
    it(`${mode}: the agent ${may}`, async () => {
      const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-test-'))
      const options = {
        arms: [],
        mode,
        replicas: 3,
        gateways: 2,
        workers: 2,
        rate: 150,
        traffic: 'all' as const,
        evidence: 'barrier' as const,
        keepLogs: directory,
        seed: 1,
        json: true,
        lateMs: undefined,
        hold: false
      }
      const arm = await runArm('apisix-drain', options, () => {}, new AbortController().signal)
      try {
        const { detail } = arm
        const why = JSON.stringify({ failures: detail.load.failures, answers: detail.answers })
        expect(detail.failed, why).to.equal(0)
        expect(detail.late, why).to.equal(0)
        const proven = Object.entries(detail.answers).filter(([answer]) => answer.endsWith('(barrier)'))
        expect(
          proven.reduce((sum, [, count]) => sum + count, 0),
          why
        ).to.equal(3)
        const log = await readFile(join(directory, 'apisix-drain', 'admin.log'), 'utf8')
        const requests = log
          .trim()
          .split('\n')
          .map(line => JSON.parse(line) as AdminRequest)
        const byAgent = requests.filter(({ by }) => by !== OWNER_AGENT)
        expect(byAgent.length, 'the agent reads').to.be.above(0)
        const byHand = byAgent.filter(({ method }) => method !== 'GET')
        if (may === 'never writes') expect(byHand).to.deep.equal([])
      } finally {
        await arm.world.close()
        await rm(directory, { recursive: true })
      }
    })
  }
})
