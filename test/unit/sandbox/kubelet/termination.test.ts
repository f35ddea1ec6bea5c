import { expect } from 'chai'
import { fileURLToPath } from 'node:url'
import { startKubelet, type Kubelet } from '../../../../sandbox/kubelet/kubelet.ts'
import { podStore } from '../../../../sandbox/kubelet/pod-store.ts'
import type { Container } from '../../../../sandbox/kubernetes/objects.ts'
import { createStore, type Store } from '../../../../sandbox/kubernetes/store.ts'
import { now } from '../../../../sandbox/now.ts'
import { ranMs } from '../../../build/apisix.ts'

// The stand-in must do with real processes what real kubelets did in measurements.

/** Far less than what a pod would wait for otherwise, of which 20 s is the least: the pods' processes may have to wait for a core. */
const SOON_MS = 10_000
/** It ends at once at TERM. A shell starts faster than Node. */
const POLITE = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.02; done']
/** Only KILL ends it. */
const STUBBORN = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.02; done']
const app = fileURLToPath(new URL('../../../../sandbox/app/main.ts', import.meta.url))

const container = (preStop: readonly string[], command = POLITE, name = 'main'): Container => ({
  name,
  command,
  lifecycle: { preStop: { exec: { command: preStop } } }
})
/** For how long this process could run between two moments by `now()`, in ms. */
function ranBetween(from: number, to: number): number {
  const origin = now() - performance.now()
  return ranMs(from - origin, to - origin)
}

describe('sandbox/kubelet: how a pod is ended', () => {
  let store: Store
  let kubelet: Kubelet
  beforeEach(() => {
    store = createStore()
    const images = { app: { command: [process.execPath, app], ready: 'message' as const } }
    kubelet = startKubelet({ store: podStore(store), host: 'host-1', images })
  })
  afterEach(() => kubelet.close())

  /** Creates a pod of these containers, and waits until it is Ready. */
  async function started(containers: readonly Container[], graceSeconds = 30) {
    const pod = store.create('pods', {
      metadata: { namespace: 'shop', name: 'web-1' },
      spec: { nodeName: 'host-1', terminationGracePeriodSeconds: graceSeconds, containers }
    })
    const conditions = () => store.get('pods', 'shop', 'web-1')?.status.conditions
    const isReady = () => conditions()?.some(({ type, status }) => type === 'Ready' && status === 'True')
    await kubelet.until('it is Ready', () => isReady() === true, 60_000)
    return { pod, record: kubelet.records().find(({ uid }) => uid === pod.metadata.uid)! }
  }
  type Started = Awaited<ReturnType<typeof started>>
  /** Deletes the pod, and waits until it is gone. */
  async function ended({ pod, record }: Started, options: Parameters<Store['delete']>[3] = {}) {
    store.delete('pods', pod.metadata.namespace, pod.metadata.name, options)
    await kubelet.until('the pod is gone', () => record.goneAt !== undefined, 60_000)
    return record
  }

  for (const [what, command] of [
    ['exits with an error', ['sh', '-c', 'echo no >&2; exit 7']],
    ['does not exist (a distroless image)', ['/no/such/binary']]
  ] as const)
    it(`TERMs at once, and reports it, when the hook ${what}`, async () => {
      const record = await ended(await started([container(command)]))
      expect(record.hooks[0]).to.include({ ok: false })
      expect(ranBetween(record.deletionSeenAt!, record.termAt!)).to.be.below(SOON_MS)
      expect(record.exits[0], 'TERM, not KILL').to.include({ code: 0, signal: null })
      const failed = store.list('events').filter(({ reason }) => reason === 'FailedPreStopHook')
      expect(failed).to.have.length(1)
    })

  it('TERMs at the end of the grace when the hook is longer, and KILLs 2 s later', async () => {
    const record = await ended(await started([container(['sleep', '20'], STUBBORN)], 1))
    expect(record.termAt! - record.hookStartedAt!).to.be.at.least(990)
    expect(ranBetween(record.hookStartedAt!, record.termAt!)).to.be.below(SOON_MS)
    expect(record.exits[0]!.at - record.termAt!).to.be.at.least(1990)
    expect(ranBetween(record.termAt!, record.exits[0]!.at)).to.be.below(SOON_MS)
    expect(record.exits[0]).to.include({ code: null, signal: 'SIGKILL' })
    expect(record.hooks[0], 'the hook dies with its container').to.include({ ok: false })
  })

  it('subtracts the time of the hook, in whole seconds, from the time left for the process', async () => {
    const record = await ended(await started([container(['sleep', '1.2'], STUBBORN)], 4))
    // The hook of 1.2 s can take longer on a busy machine. At least 2 s are left.
    const spent = Math.floor((record.termAt! - record.hookStartedAt! + 10) / 1000)
    expect(record.exits[0]!.at - record.termAt!).to.be.at.least(Math.max(4 - spent, 2) * 1000 - 10)
    expect(ranBetween(record.termAt!, record.exits[0]!.at)).to.be.below(3900)
  })

  it('cuts a running hook short when the pod is then deleted by force', async () => {
    const web = await started([container(['sleep', '20'])])
    store.delete('pods', 'shop', 'web-1')
    await kubelet.until('the hook runs', () => web.record.hookStartedAt !== undefined, 60_000)
    const record = await ended(web, { gracePeriodSeconds: 0 })
    expect(ranBetween(record.hookStartedAt!, record.termAt!)).to.be.below(SOON_MS)
  })

  it('runs the hooks of all containers at the same time', async () => {
    const both = ['a', 'b'].map(name => container(['sleep', '0.4'], POLITE, name))
    const [a, b] = (await ended(await started(both))).hooks
    expect([a!.container, b!.container].toSorted()).to.deep.equal(['a', 'b'])
    expect(b!.startedAt, 'b started before a had ended').to.be.below(a!.endedAt)
    expect(a!.startedAt).to.be.below(b!.endedAt)
  })
})
