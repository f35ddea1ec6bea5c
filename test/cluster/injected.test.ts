import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { installAgent } from './agent.ts'
import { HELPER } from './images/names.ts'
import { NAMESPACE, type WorkloadOptions } from './objects/workload.ts'
import { restart } from './rollout.ts'
import { answered, endedInTime, kube, lostNothing, observe, PROVED } from './scenario.ts'
import { world } from './setup.ts'
import type { Workload } from './world.ts'

const [REPOSITORY, TAG] = HELPER.split(':')
const FALLBACK_MS = 5000
/** As an installation that asks hooks for tokens, and writes them for those who want them. */
const VALUES = {
  'config.apisix.barrier': {},
  'config.serve.auth': 'token',
  'injection.helper.image.repository': REPOSITORY,
  'injection.helper.image.tag': TAG
}
const LABEL = 'apisix-drain.io/inject'

const update = (web: Workload) => restart(world(), web)

/** Adds hooks in that way while the tests run. */
function injecting(way: 'policy' | 'webhook'): void {
  before(async function () {
    this.timeout(180_000)
    await installAgent(world(), { ...VALUES, [`injection.${way}.enabled`]: true })
    await kube('label', 'namespace', NAMESPACE, `${LABEL}=true`)
    const tried = ['run', 'tried', '--image=none', '--port=1', '--dry-run=server', '--output=json'] as const
    // A policy is known a moment after it is there, and a webhook when its certificate is.
    await eventually('hooks are added', async () => (await kube(...tried)).includes('apisix-drain-hook'))
  })
  after(async () => {
    await kube('label', 'namespace', NAMESPACE, `${LABEL}-`)
    await installAgent(world(), { 'config.apisix.barrier': {} })
  })
}

function areAddedTo(what: string, name: string, options: Partial<WorkloadOptions> = {}): void {
  it(`are added to ${what}, show their token, and lose no request`, async () => {
    const replicas = 3
    const observed = await observe(name, { ...options, replicas, arm: 'none' }, update)
    lostNothing(observed)
    endedInTime(observed, replicas)
    answered(observed, ...PROVED)
    expect(observed.hooks).to.have.length(replicas)
    for (const { ms } of observed.hooks) expect(ms).to.be.below(FALLBACK_MS)
  })
}

/** The agent's own webhook, as on a Kubernetes that has no such policies. */
describe('hooks that nobody wrote, added by the webhook, with tokens', () => {
  injecting('webhook')
  areAddedTo('a Deployment', 'by-webhook')
  areAddedTo('a native sidecar', 'sidecar-by-webhook', { asSidecar: true })
})

/** The chart's own policy and the kubelet's own tokens: nobody wrote these hooks. */
describe('hooks that nobody wrote, added by the policy, with tokens', () => {
  injecting('policy')
  areAddedTo('a Deployment', 'by-policy')
  areAddedTo('a native sidecar', 'sidecar-by-policy', { asSidecar: true })

  it('leave a hook that is there alone: without a token it is refused, and sleeps', async () => {
    const observed = await observe('own-hook', { replicas: 2 }, async web => {
      await update(web)
      const pods = await kube('get', 'pods', '--selector=app=own-hook', '--output=json')
      expect(pods).to.include('curl').and.not.include('apisix-drain-hook')
    })
    lostNothing(observed)
    endedInTime(observed, 2)
    answered(observed)
    for (const { ms } of observed.hooks) expect(ms).to.be.at.least(FALLBACK_MS)
  })
})
