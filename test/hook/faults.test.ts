import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { HOOK, runHook, startHook, type HookRun } from './run.ts'
import {
  answers,
  chunked,
  cut,
  gibberish,
  hangs,
  holdsAndDies,
  NOTHING,
  refuses,
  says,
  startStub,
  type Act,
  type Stub
} from './stub.ts'

/** A hook that ends within this time was not delayed, in ms. The time is long enough for a busy machine. */
const SOON = 15_000
/** A slow call can take the whole time of the sleep. The hook's duration shows the sleep in both cases. */
const SLEPT = String.raw`(sleeping \S+ instead|no sleep, \S+ have passed already)`
const SAID =
  /^apisix-drain-hook: drained, evidence barrier, held for 4ms: every gateway avoids it \(\d\S*s in all\)\s*$/

describe('hook', () => {
  let folder: string
  let stub: Stub | undefined
  before(() => (folder = mkdtempSync(join(tmpdir(), 'hook-'))))
  after(() => rmSync(folder, { recursive: true }))
  const closeStub = async () => {
    await stub?.close()
    stub = undefined
  }
  afterEach(closeStub)

  const against = async (acts: readonly Act[], args: readonly string[] = [], env = {}): Promise<HookRun> => {
    await closeStub()
    stub = await startStub(acts)
    return runHook(['--url', stub.url, ...args], env)
  }
  /** Runs the hook with two replicas of the agent behind one name. */
  const twoReplicas = async (acts: readonly Act[], args: readonly string[]): Promise<HookRun> => {
    stub = await startStub(acts, ['127.0.0.2', '127.0.0.3'])
    const hosts = join(folder, 'hosts')
    writeFileSync(hosts, '127.0.0.2 agent\n127.0.0.3 agent\n')
    return runHook(['--url', `http://agent:${stub.port}`, ...args], {}, [
      '/usr/bin/unshare',
      '--map-root-user',
      '--mount',
      '/bin/sh',
      '-c',
      '/bin/mount --bind "$0" /etc/hosts && exec "$@"',
      hosts,
      HOOK
    ])
  }

  it('calls once, prints the answer, and ends', async () => {
    const { code, stderr, stdout, ms } = await against([answers], ['--fallback', '20s'])
    expect({ code, stdout }).to.deep.equal({ code: 0, stdout: '' })
    expect(stderr).to.match(SAID)
    expect(ms).to.be.below(SOON)
    expect(stub?.requests).to.have.length(1)
    expect(stub?.requests[0]?.text).to.match(
      /^POST \/v1\/prestop\?sleep=20000ms&timeout=23[45]\d\dms HTTP\/1\.1\r\n/
    )
  })

  it('names its pod, from its environment', async () => {
    await against([answers], [], {
      POD_NAME: 'web-1',
      POD_NAMESPACE: 'shop',
      POD_UID: '7f3a'
    })
    const text = stub?.requests[0]?.text
    expect(text).to.match(/\?namespace=shop&pod=web-1&sleep=\d+ms&timeout=\d+ms&uid=7f3a HTTP/)
  })

  it('reads an answer in chunks', async () => {
    const { stderr } = await against([chunked])
    expect(stderr).to.contain('drained, evidence barrier')
  })

  for (const [what, act] of [
    ['cannot vouch', refuses(503, 'cannot-vouch')],
    ['is stopping', refuses(503, 'shutting-down')],
    ['has too many hooks', refuses(429, 'too-many-hooks-of-pod')],
    ['is cut off', cut],
    ['is nothing of ours', gibberish],
    ['is a proxy without a backend', says(502, {})]
  ] as const) {
    it(`calls again if the first answer ${what}`, async () => {
      const { code, stderr, ms } = await against([act, answers], ['--fallback', '20s'])
      expect(code).to.equal(0)
      expect(stderr).to.contain('drained')
      expect(stub?.requests).to.have.length(2)
      expect(ms).to.be.below(SOON)
    })
  }

  it('calls the other replica, at its own address', async () => {
    const { stderr } = await twoReplicas([refuses(503, 'shutting-down'), answers], ['--fallback', '20s'])
    expect(stderr).to.contain('drained')
    expect(stub?.requests.map(({ to }) => to).toSorted()).to.deep.equal(['127.0.0.2', '127.0.0.3'])
  })

  it('tries every replica even if no time is left for the fallback', async () => {
    const { stderr, code } = await twoReplicas([cut, answers], ['--fallback', '0s'])
    expect(code).to.equal(0)
    expect(stderr.trim().split('\n').at(-1)).to.match(SAID)
  })

  it('moves a hook to another agent if the first one held and dropped it, however late', async () => {
    const { stderr, ms } = await against([holdsAndDies(1500), answers], ['--fallback', '300ms'])
    expect(stderr).to.contain('drained')
    expect(ms).to.be.at.least(1500)
  })

  for (const [what, url, said] of [
    ['no agent listens', 'http://127.0.0.1:1', String.raw`\d tries\): 127\.0\.0\.1:1 connection refused`],
    ['the name does not resolve', 'http://agent.invalid', String.raw`0 tries\): lookup agent\.invalid.*`]
  ] as const)
    it(`sleeps as long as the sleep that it replaces if ${what}`, async () => {
      const { code, stderr, ms } = await runHook(['--url', url, '--fallback', '700ms'])
      expect(code).to.equal(0)
      expect(stderr).to.match(RegExp(`^apisix-drain-hook: no answer \\(${said}; ${SLEPT}\n$`))
      expect(ms).to.be.within(700, SOON)
    })

  for (const [status, error] of [
    [400, 'bad-request'],
    [403, 'forbidden'],
    [404, 'unknown-pod']
  ] as const) {
    it(`falls back at once if it is refused with ${status}`, async () => {
      const { code, stderr, ms } = await against([refuses(status, error)], ['--fallback', '600ms'])
      expect(code).to.equal(0)
      expect(stderr).to.match(RegExp(`refused with ${status} ${error}: because; ${SLEPT}`))
      expect(stub?.requests).to.have.length(1)
      expect(ms).to.be.within(600, SOON)
    })
  }

  it('sleeps if nothing was proved', async () => {
    const { code, stderr, ms } = await against([says(503, NOTHING)], ['--fallback', '600ms'])
    expect(code).to.equal(0)
    expect(stderr).to.match(
      RegExp(`unproved, evidence none, held for 0s: the reserve is all there is; ${SLEPT}`)
    )
    expect(stub?.requests).to.have.length(1)
    expect(ms).to.be.within(600, SOON)
  })

  it('ends with its budget if an agent hangs', async () => {
    const { code, stderr, ms } = await against([hangs], ['--budget', '800ms', '--fallback', '100ms'])
    expect(code).to.equal(0)
    expect(stderr).to.match(/no answer from 127\.0\.0\.1:\d+ within the budget of 800ms; no sleep, /)
    expect(ms).to.be.within(800, SOON)
  })

  it('never sleeps past its budget', async () => {
    const { code, ms } = await runHook([
      '--url',
      'http://127.0.0.1:1',
      '--budget',
      '500ms',
      '--fallback',
      '60s'
    ])
    expect(code).to.equal(0)
    expect(ms).to.be.within(500, SOON)
  })

  it('fails after the sleep, not before, if it is configured to fail', async () => {
    const args = ['--url', 'http://127.0.0.1:1', '--fallback', '500ms', '--fail']
    const { code, ms } = await runHook(args)
    expect(code).to.equal(1)
    expect(ms).to.be.at.least(500)
    expect(await against([answers], ['--fail'])).to.include({ code: 0 })
  })

  it('is no worse than a sleep if it is misused, and reports the mistake', async () => {
    const { code, stderr, ms } = await runHook(['--fallback', '500ms', '--bugdet', '1s'], {
      APISIX_DRAIN_URL: 'agent'
    })
    expect(code).to.equal(2)
    expect(stderr.split('\n').slice(0, 2)).to.deep.equal([
      'apisix-drain-hook: flag provided but not defined: -bugdet',
      'apisix-drain-hook: APISIX_DRAIN_URL: "agent" is no URL such as http://apisix-drain.apisix:8080'
    ])
    expect(stderr).to.match(RegExp(`wrong usage, see --help; ${SLEPT}`))
    expect(ms).to.be.at.least(500)
  })

  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130]
  ] as const) {
    it(`ends at once with ${signal}, and the agent sees it disconnect`, async () => {
      stub = await startStub([hangs])
      const { child, ended } = startHook(['--url', stub.url])
      await until('the agent holds the hook', () => stub?.requests.length === 1)
      child.kill(signal)
      const { code: actual, stderr } = await ended
      expect(actual).to.equal(code)
      expect(stderr).to.contain('before there was an answer')
      await until('the connection is gone', () => stub?.left() === 1)
    })
  }

  it('writes its lines into a file too, such as the log of the container', async () => {
    const log = join(folder, 'log')
    writeFileSync(log, 'before\n')
    const { stderr } = await against([answers], [], { APISIX_DRAIN_LOG: log })
    expect(readFileSync(log, 'utf8')).to.equal(`before\n${stderr}`)
    const lost = await against([answers], ['--log', join(folder, 'no/such')])
    expect(lost).to.include({ code: 0 })
    expect(lost.stderr).to.contain('--log: open')
  })
})
