import { expect } from 'chai'
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
  'injection.policy.enabled': true,
  'injection.helper.image.repository': REPOSITORY,
  'injection.helper.image.tag': TAG
}
const LABEL = 'apisix-drain.io/inject'

/** The chart's own policy and the kubelet's own tokens: nobody wrote these hooks. */
describe('hooks that nobody wrote, with tokens', () => {
  const update = (web: Workload) => restart(world(), web)

  before(async function () {
    this.timeout(180_000)
    await installAgent(world(), VALUES)
    await world().kube('label', 'namespace', NAMESPACE, `${LABEL}=true`)
  })
  after(async () => {
    await world().kube('label', 'namespace', NAMESPACE, `${LABEL}-`)
    await installAgent(world(), { 'config.apisix.barrier': {} })
  })

  const WORKLOADS: Readonly<Record<string, Partial<WorkloadOptions>>> = {
    'a Deployment': {},
    'a native sidecar': { asSidecar: true }
  }
  for (const [index, [what, options]] of Object.entries(WORKLOADS).entries())
    it(`are added to ${what}, show their token, and lose no request`, async () => {
      const replicas = options.replicas ?? 3
      const observed = await observe(`injected-${index}`, { ...options, arm: 'none' }, update)
      lostNothing(observed)
      endedInTime(observed, replicas)
      answered(observed, ...PROVED)
      expect(observed.hooks).to.have.length(replicas)
      for (const { ms } of observed.hooks) expect(ms).to.be.below(FALLBACK_MS)
    })

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
