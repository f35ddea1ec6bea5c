import { expect } from 'chai'
import { harness, ranBetween, STUBBORN, type Harness } from './harness.ts'

// The stand-in must do with real processes what real kubelets did in measurements.

/** Far less than what a pod would wait for otherwise, of which 20 s is the least: the pods' processes may have to wait for a core. */
const SOON_MS = 10_000

describe('sandbox/kubelet: how a pod is ended', () => {
  let world: Harness
  beforeEach(() => (world = harness()))
  afterEach(() => world.close())

  for (const [what, command] of [
    ['exits with an error', ['sh', '-c', 'echo no >&2; exit 7']],
    ['does not exist (a distroless image)', ['/no/such/binary']]
  ] as const) {
    it(`TERMs at once, and reports it, when the hook ${what}`, async () => {
      const { pod, record } = await world.pod('web-1', { preStop: { exec: { command } } })
      await world.end(pod)
      expect(record.hooks[0]).to.include({ ok: false })
      expect(ranBetween(record.deletionSeenAt!, record.termAt!)).to.be.below(SOON_MS)
      expect(record.exits[0], 'TERM, not KILL').to.include({ code: 0, signal: null })
      expect(world.events('FailedPreStopHook')).to.have.length(1)
    })
  }

  it('TERMs at the end of the grace when the hook is longer, and KILLs 2 s later', async () => {
    const preStop = { exec: { command: ['sleep', '20'] } }
    const { pod, record } = await world.pod('web-1', { command: STUBBORN, preStop, graceSeconds: 1 })
    await world.end(pod)
    expect(record.termAt! - record.hookStartedAt!).to.be.at.least(990)
    expect(ranBetween(record.hookStartedAt!, record.termAt!)).to.be.below(SOON_MS)
    expect(record.exits[0]!.at - record.termAt!).to.be.at.least(1990)
    expect(ranBetween(record.termAt!, record.exits[0]!.at)).to.be.below(SOON_MS)
    expect(record.exits[0]).to.include({ code: null, signal: 'SIGKILL' })
    expect(record.hooks[0], 'the hook dies with its container').to.include({ ok: false })
  })

  it('subtracts the time of the hook, in whole seconds, from the time left for the process', async () => {
    const preStop = { exec: { command: ['sleep', '1.2'] } }
    const { pod, record } = await world.pod('web-1', { command: STUBBORN, preStop, graceSeconds: 4 })
    await world.end(pod)
    expect(record.exits[0]!.at - record.termAt!).to.be.at.least(2990)
    expect(ranBetween(record.termAt!, record.exits[0]!.at)).to.be.below(3900)
  })

  it('cuts a running hook short when the pod is then deleted by force', async () => {
    const preStop = { exec: { command: ['sleep', '20'] } }
    const { pod, record } = await world.pod('web-1', { preStop })
    world.store.delete('pods', 'shop', 'web-1')
    await world.kubelet.until('the hook runs', () => record.hookStartedAt !== undefined, 60_000)
    const ended = world.end(pod, 0)
    await ended
    expect(ranBetween(record.hookStartedAt!, record.termAt!)).to.be.below(SOON_MS)
  })

  it('runs the hooks of all containers at the same time', async () => {
    const container = (name: string) => ({
      name,
      command: ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.02; done'],
      lifecycle: { preStop: { exec: { command: ['sleep', '0.4'] } } }
    })
    const { pod, record } = await world.pod('web-1', { containers: [container('a'), container('b')] })
    await world.end(pod)
    const [a, b] = record.hooks
    expect([a!.container, b!.container].toSorted()).to.deep.equal(['a', 'b'])
    expect(b!.startedAt, 'b started before a had ended').to.be.below(a!.endedAt)
    expect(a!.startedAt).to.be.below(b!.endedAt)
  })
})
